# SPDX-License-Identifier: GPL-2.0
"""The environment of the project: build root, kernel, guest image, builds.

Each thing that takes long to make is a *part* (`parts.py`): a directory in the
cache that is named after what it was made from. `cli.py` lists the parts and
makes the missing ones; other tools ask `catalog.Catalog` for a part's path.
"""
