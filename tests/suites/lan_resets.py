# SPDX-License-Identifier: GPL-2.0
"""Resets of the virtual card under stock ice, and ice taken away and brought back."""

from irdma_suites.suite import Suite

SUITE = Suite(
    about="core, function and bus resets, unbind, rmmod and self-test of stock ice",
    guests=2,
    drivers=("irdma",),
    alone=True,
    timeout=400)


def guest(g) -> None:
    """The script brings its own roles."""
    g.ktap("lan-reset-test", "sh", "/opt/irdma_rs/tests/guest/lan-reset-test.sh")
    g.sync()
