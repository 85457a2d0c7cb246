# SPDX-License-Identifier: GPL-2.0
"""Programs of rdma-core and perftest that join groups or connect datagram services."""

import re

from irdma_suites import perftest
from irdma_suites.background import Background
from irdma_suites.suite import Suite

SUITE = Suite(
    about="mckey, udaddy, perftest's groups and rdma-core's own tests, behind a snooping switch",
    guests=2,
    on_request=("rxe",),
    snoop="interval=2,response=1,fast_leave=true",
    timeout=600,
    stock_defects={
        r"^perftest leaves the ARP table":
            "what address handles enter in the ARP table is never taken back (irdma_add_arp)",
        # Now and then: see tests/suites/mcast_races.py.
        r"^rdma-core: test_rdmacm_async_.*multicast_traffic$":
            "two processes attach to one group, or leave it, at once: its list of members is "
            "rewritten while the device reads it (irdma_mcast_cqp_op, irdma_create_mg_ctx)",
    },
    rxe_defects={
        r"^mckey (between guests: (sender joins send-only|both by their routes)"
        r"|within a guest: .*): receiver$":
            "sends are lost that are not done when their queue pair is destroyed; mckey does "
            "not wait for its last ones",
        r"^perftest: its default group over an IPv6 address works$":
            "the group has the scope of an interface, and the host's stack, through which rxe "
            "sends, lets such out nowhere",
    },
    # Two processes that leave a group at once: see tests/suites/mcast_races.py.
    stock_allow_warn=(r"WARNING: .*(uverbs_main|restrack|refcount)\.[ch]:",
                      r"refcount_t: underflow", r"restrack: "))

# rping, cmtime, ucmatose and rstream need RC queue pairs, which irdma_rs does not have.

#: rdma-core's tests that fit: multicast, and datagrams by rdma_cm.
PYVERBS = ("multicast", "async_udp_traffic")
#: Seconds for what takes a few: to end what hangs, on a machine that others load.
LIMIT = 120
#: The same for rdma-core's tests: before the first, Python compiles all 57 files of them, which
#: takes 15 seconds of a guest that has a processor for itself.
PYVERBS_LIMIT = 300
#: errno of a group that RoCEv2 cannot join through rdma_cm; of the kernel's own.
ENOTSUPP = "Unknown error 524"


def guest(g) -> None:
    """Node 0 receives and serves, node 1 sends and connects."""
    _mckey(g)
    _mckey_refused(g)
    _udaddy(g)
    _perftest(g)
    _pyverbs(g)


def _comes(g, name: str, condition) -> None:
    """A test that is a condition's coming true."""
    g.check(name, g.wait(condition, LIMIT), f"not in {LIMIT} s")


# -- mckey ------------------------------------------------------------------


def _mckey(g) -> None:
    """Options of the receiver, and of the sender, of each mode."""
    here = ("-b", g.ip)
    modes = (
        ("plain", here, here),
        ("4 identifiers, 20 messages of 1000 bytes", (*here, "-c", 4, "-C", 20, "-S", 1000),
         (*here, "-c", 4, "-C", 20, "-S", 1000)),
        ("messages that fill the MTU", (*here, "-S", 1024), (*here, "-S", 1024)),
        ("sender joins send-only", here, (*here, "-o")),
        ("both by their routes", (), ()),
    )
    for number, (name, receiver, sender) in enumerate(modes, 1):
        members = receiver[receiver.index("-c") + 1] if "-c" in receiver else 1
        group = f"239.79.1.{number}"
        routed = not receiver
        if routed:
            g.succeeds("route to groups", "ip", "route", "add", "239.0.0.0/8", "dev", g.netdev)
        _exchange(g, f"mckey between guests: {name}", group, receiver, sender,
                  members)
        if routed:
            g.succeeds("route to groups goes", "ip", "route", "del", "239.0.0.0/8")
    if g.leads:
        for name, options in (("plain", here), ("sender joins send-only", (*here, "-o"))):
            group = f"239.79.2.{len(name)}"
            with Background("mckey", "-m", group, *here) as receiver:
                _comes(g, f"mckey within a guest: {name}: receiver is ready",
                       lambda at=group: _ready(g, at))
                g.succeeds(f"mckey within a guest: {name}: sender", "mckey", "-m", group,
                           "-s", *options)
                _ended(g, f"mckey within a guest: {name}: receiver", receiver)
    g.sync()


def _ready(g, group: str, members: int = 1) -> bool:
    """Whether what is sent now is received: joined, and so many queue pairs attached.

    The second comes later, and rxe does not tell of it.
    """
    if not g.subscribed(group):
        return False
    if g.driver == "rxe":
        return True
    return sum(len(entry["members"]) for entry in g.nic("groups")
               if entry["ip"] == group) == members


def _exchange(g, name: str, group: str, receiver, sender, members: int) -> None:
    """Node 0 receives what node 1 sends, through the switch."""
    if g.leads:
        with Background("mckey", "-m", group, *receiver) as background:
            _comes(g, f"{name}: receiver is ready", lambda: _ready(g, group, members))
            g.sync()
            _ended(g, f"{name}: receiver", background)
        _comes(g, f"{name}: switch hears of its end", lambda: not g.subscribed(group))
    else:
        g.sync()
        g.succeeds(f"{name}: sender", "mckey", "-m", group, "-s", *sender)
    g.sync()


def _ended(g, name: str, background: Background) -> None:
    done = background.finish(LIMIT)
    g.check(name, done.returncode == 0,
            f"status {done.returncode}: " + " | ".join(done.stdout.splitlines()[-4:]))


def _mckey_refused(g) -> None:
    """Modes that have to fail, and what is to be said of them."""
    if not g.leads:
        return
    here, group = ("-b", g.ip), ("-m", "239.79.3.1")
    for name, words, error in (
            ("an IPv6 group", ("-m", "ff0e::79:1", "-b", g.ip6), ENOTSUPP),
            ("an IPv6 group send-only", ("-m", "ff0e::79:1", "-b", g.ip6, "-s", "-o"), ENOTSUPP),
            ("a group that is not mapped", ("-M", "ff0e::79:2", *here), ENOTSUPP),
            ("without its own loopback", (*group, *here, "-l"), "Operation not supported"),
            ("a sender without its own loopback", (*group, *here, "-s", "-l"),
             "Operation not supported"),
            ("a message longer than the MTU", (*group, *here, "-s", "-S", 4097),
             "larger than active mtu")):
        done = g.run("mckey", *words, timeout=LIMIT)
        g.check(f"mckey: {name} is refused: {error}",
                done.returncode not in (0, 124) and error in done.stdout,
                f"status {done.returncode}: {done.stdout[-300:]}")
    said = g.run("ip", "maddr", "show", "dev", g.netdev).stdout
    g.check("refused groups are not joined", "239.79." not in said and "79:1" not in said, said)


# -- udaddy -----------------------------------------------------------------


def _udaddy(g) -> None:
    """Datagram services that rdma_cm finds by address (SIDR), and traffic both ways."""
    for family, ours, theirs in (("IPv4", g.ip, g.peers[0]), ("IPv6", g.ip6, g.peers6[0])):
        for name, options in (("plain", ()), ("4 connections of 1000 bytes",
                                              ("-c", 4, "-S", 1000)), ("TOS 32", ("-t", 32))):
            _service(g, f"udaddy between guests: {family}, {name}", ours, theirs, options)
        if g.leads:
            with Background("udaddy", "-b", ours) as server:
                _comes(g, f"udaddy within a guest: {family}: server listens",
                       lambda: _listens(g))
                g.succeeds(f"udaddy within a guest: {family}: client", "udaddy", "-b", ours,
                           "-s", ours)
                _ended(g, f"udaddy within a guest: {family}: server", server)
        g.sync()


def _service(g, name: str, ours: str, theirs: str, options) -> None:
    # What the server gets is what the client sends: they have to agree.
    if g.leads:
        with Background("udaddy", "-b", ours, *options) as server:
            _comes(g, f"{name}: server listens", lambda: _listens(g))
            g.sync()
            _ended(g, f"{name}: server", server)
    else:
        g.sync()
        g.succeeds(f"{name}: client", "udaddy", "-b", ours, "-s", theirs, *options)
    g.sync()


def _listens(g) -> bool:
    return "LISTEN" in g.run("rdma", "resource", "show", "cm_id").stdout


# -- perftest ---------------------------------------------------------------


def _perftest(g) -> None:
    """Without -M perftest takes an IPv6 group, which goes with an IPv6 address only."""
    before = _arps(g)
    for family, address, fine in (("IPv6", g.ip6, True), ("IPv4", g.ip, False)):
        words = ("ib_send_bw", "-d", g.device, "-c", "UD", "-g", "-n", 100, "-s", 512,
                 "-x", g.gid_index(address))
        name = f"perftest: its default group over an {family} address"
        done = perftest.pair(g, name, words, None if g.leads else g.peers[0], LIMIT)
        said = f"status {done.returncode}: {done.stdout[-300:]}"
        if fine:
            g.check(f"{name} works", done.returncode == 0, said)
        else:
            g.check(f"{name} is refused", done.returncode not in (0, 124)
                    and perftest.CLOCKS not in done.stdout, said)
        g.sync()
    if not g.leads:
        # Only who sends has made address handles.
        g.equal("perftest leaves the ARP table as it is", _arps(g), before)


def _arps(g):
    """Entries of the card's ARP table; None without a card."""
    return (g.nic("state").get("rdma") or {}).get("arps")


# -- rdma-core's own tests --------------------------------------------------

_VERDICT = re.compile(r"^(test_\w+) \(.*?\)(?:\n.*?)? \.\.\. (?:.*\n)*?(ok|FAIL|ERROR|skipped .*)$",
                      re.MULTILINE)


def _pyverbs(g) -> None:
    if g.leads:
        only = [word for name in PYVERBS for word in ("-k", name)]
        done = g.run("python3", "/opt/rdma-core/tests/run_tests.py", "--dev", g.device, "-v",
                     *only, timeout=PYVERBS_LIMIT)
        found = _VERDICT.findall(done.stdout)
        for words in PYVERBS:
            g.check(f"rdma-core's tests of {words}: there are some",
                    any(words in name for name, _ in found), done.stdout[-400:])
        for name, verdict in found:
            if verdict.startswith("skipped"):
                g.skip(f"rdma-core: {name}", verdict.removeprefix("skipped").strip(" '"))
            else:
                g.check(f"rdma-core: {name}", verdict == "ok", done.stdout[-600:])
    g.sync()
