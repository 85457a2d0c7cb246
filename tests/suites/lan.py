# SPDX-License-Identifier: GPL-2.0
"""The LAN half of the virtual card under stock ice."""

from irdma_suites.suite import Suite

SUITE = Suite(
    about="ordinary networking through stock ice on the virtual card",
    guests=2,
    drivers=("irdma_rs",),
    timeout=420)


def guest(g) -> None:
    """The script brings its own roles."""
    g.ktap("lan-test", "sh", "/opt/irdma_rs/tests/guest/lan-test.sh")
    g.sync()
