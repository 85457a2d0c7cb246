# SPDX-License-Identifier: GPL-2.0
"""Unit tests of the benchmarks: reading, judging and showing, without a guest."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "suites"), str(TESTS / "lab"), str(TESTS.parent / "scripts")]
