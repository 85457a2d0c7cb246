# SPDX-License-Identifier: GPL-2.0
"""KUnit suites of the modules, on the debug kernel; `make kunit` runs just these."""

from irdma_suites import kunit
from irdma_suites.suite import Suite

SUITE = Suite(
    about="KUnit suites of the modules",
    guests=1,
    drivers=("none",),
    kernels=("debug",),
    debug_each_time=True,
    append=kunit.ENABLE,
    modules=True,
    timeout=150)


def guest(g) -> None:
    """Each test of each suite is a test of ours."""
    tests = 0
    for module, suite, text in kunit.run():
        for outcome in kunit.read(suite, text):
            tests += 1
            g.result(f"{module}: {suite}: {outcome.name}", outcome)
    g.check("there are tests at all", tests > 0, "no module had a KUnit test")
