# SPDX-License-Identifier: GPL-2.0
"""Where things are: the source tree and the cache."""

import os
from pathlib import Path

#: Top of the source tree.
TREE = Path(__file__).resolve().parents[2]


def cache_dir(environ=None) -> Path:
    """Directory of everything that can be made again."""
    environ = os.environ if environ is None else environ
    if environ.get("IRDMA_RS_CACHE"):
        return Path(environ["IRDMA_RS_CACHE"]).absolute()
    if environ.get("XDG_CACHE_HOME"):
        return Path(environ["XDG_CACHE_HOME"]).absolute() / "irdma_rs"
    return Path(environ.get("HOME", "/root")) / ".cache" / "irdma_rs"
