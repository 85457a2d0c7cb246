# SPDX-License-Identifier: GPL-2.0
"""A program of perftest, as server in one guest and as client in another."""

from .background import Background

#: Before it reports, perftest compares two clocks of the machine. On one that does other
#: things meanwhile it finds them apart, and fails whatever the device has done.
CLOCKS = "Can't produce a report"
#: How often it is run for that.
TRIES = 5


def listens(g) -> bool:
    """Whether a server in this guest waits for its client."""
    return ":18515" in g.run("ss", "-Hltn").stdout


def pair(g, name: str, words, client, limit: float):
    """Run it once in both guests, again if only the clocks were in the way.

    `client` is the server's address in the guest that asks, None in the one that serves.
    Returns this guest's CompletedProcess.
    """
    note = f"{g.suite}-perftest-"
    for _ in range(TRIES):
        if client:
            # A peer that does not listen yet is not asked again.
            g.sync()
            done = g.run(*words, client, timeout=limit)
        else:
            with Background(*words, slowness=g.slowness) as server:
                if not g.wait(lambda: listens(g), limit):
                    g.check(f"{name}: server listens", False, server.said()[-400:])
                g.sync()
                done = server.finish(limit)
        (g.share / f"{note}{g.node}").write_text(CLOCKS if CLOCKS in done.stdout else "")
        g.sync()
        again = any((g.share / f"{note}{node}").read_text() for node in range(g.nodes))
        g.sync()
        if not again:
            break
        g.note(f"{name}: the machine's clocks were apart, once more")
    return done
