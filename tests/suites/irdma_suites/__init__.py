# SPDX-License-Identifier: GPL-2.0
"""What `make test` is made of.

A suite is one file beside this package. On the host it says what it needs
(`SUITE`, see `suite`); in a guest its function `guest` runs the tests and
prints KTAP; back on the host its function `judge`, if there is one, compares
what the guests left in their shared directory.

`cli` is the command line, `host` the checks that need no guest, `boots` runs
suites in guests, `ktap` reads results, `report` counts and shows them, `guest`
is what a suite uses inside a guest.
"""
