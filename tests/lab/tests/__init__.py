# SPDX-License-Identifier: GPL-2.0
"""Unit tests of scripts/env and scripts/lab; `tests/lab/run-tests` runs them."""

import sys
from pathlib import Path

_TOP = Path(__file__).resolve().parents[3]
sys.path[0:0] = [str(_TOP / "scripts"), str(_TOP / "tests/lab")]
