# SPDX-License-Identifier: GPL-2.0
"""What members get when the host around them changes: addresses, MTU, rights."""

from contextlib import ExitStack
from pathlib import Path

from irdma_suites import perftest
from irdma_suites.background import Background
from irdma_suites.shell import Shell
from irdma_suites.suite import Suite

SUITE = Suite(
    about="raw groups and IGMP, MAC lists, MTU, addresses, Q_Key rights, perftest",
    guests=2,
    kernels=("stock", "debug"),
    timeout=600,
    stock_defects={
        r"^netdev MTU (2048|2100): the port promises no more":
            "active_mtu is made of the netdev's MTU without room for headers "
            "(irdma_query_port)",
        r"address handle .* is EINVAL":
            "an address handle of mixed families is made, and goes nowhere "
            "(irdma_setup_ah, irdma_arp_table)",
    })

#: Headers of the largest datagram: IPv6, UDP, BTH, DETH, immediate data, ICRC.
HEADERS = 40 + 8 + 12 + 8 + 4 + 4
MTUS = (2048, 2100, 4200)
#: Seconds for what takes a few: to end what hangs.
LIMIT = 120
#: perftest's group, as it wants to be told: sixteen numbers.
GROUP = "239.1.1.20"
MGID = ":".join(map(str, (*(10 * [0]), 255, 255, *map(int, GROUP.split(".")))))


def guest(g) -> None:
    """Node 0 sends, node 1 has the members."""
    _rights(g)
    _blocked_loopback(g)
    _raw_and_joined(g)
    _mac_list(g)
    _no_address(g)
    _mtus(g)
    _perftest(g)
    _perftest_receivers(g)
    # Last: on stock the ARP table is not what it was.
    _mixed_families(g)


def _exchange(g, name: str, group: str, family: int = 4, address: str = "",
              while_member=lambda: "") -> None:
    """Node 1 attaches, node 0 sends 10 datagrams and a marker. One result, on node 1.

    `while_member` is called on node 1 and says what it finds wrong. With `address` "-"
    the member's queue pair needs no address.
    """
    faults = []
    with Shell(g.device) as shell:
        said = shell("open", 0, family, *([address] if address and not g.leads else []))
        if said["err"]:
            faults.append(f"open gives {said['err']}")
        if not g.leads and (err := shell.err("attach", 0, group)):
            faults.append(f"attach gives {err}")
        g.sync()
        if g.leads:
            for words in (("send", 0, group, 10, 500), ("mark", 0, group, 600)):
                if err := shell.err(*words):
                    faults.append(f"{words[0]} gives {err}")
        g.sync()
        if not g.leads:
            said = shell("collect", 0, 600)
            tokens = [d["token"] for d in said["got"] if d["right"]]
            if said["err"] or tokens != list(range(500, 510)):
                faults.append(f"got {tokens} ({said['err'] or 'all'})")
            if wrong := while_member():
                faults.append(wrong)
            if err := shell.err("detach", 0, group):
                faults.append(f"detach gives {err}")
    if g.leads:
        g.check(f"{name}: sender", not faults, "; ".join(faults))
    else:
        g.check(name, not faults, "; ".join(faults))
    g.sync()


def joined(g, group: str) -> bool:
    """Whether the host, not the queue pair, is in an IP group on our interface."""
    return group in g.run("ip", "maddr", "show", "dev", g.netdev).stdout.split()


def _raw_and_joined(g) -> None:
    """No SA, no IGMP: the first attach makes the group. A join of the host changes nothing."""
    _exchange(g, "raw attach without IGMP membership delivers", "239.2.2.2",
              while_member=lambda: "the host joined" if joined(g, "239.2.2.2") else "")
    if not g.leads:
        g.succeeds("host joins the IP group", "ip", "addr", "add", "239.2.2.3/32", "dev",
                   g.netdev, "autojoin")
    _exchange(g, "raw attach beside an IGMP membership delivers", "239.2.2.3",
              while_member=lambda: "" if joined(g, "239.2.2.3") else "the host left")
    if not g.leads:
        g.succeeds("host leaves the IP group", "ip", "addr", "del", "239.2.2.3/32", "dev",
                   g.netdev)
        # Membership of another group is no reason to get, or to lose, this one.
        g.succeeds("host joins another group", "ip", "addr", "add", "239.2.2.5/32", "dev",
                   g.netdev, "autojoin")
    _exchange(g, "raw attach while the host is in another group delivers", "239.2.2.4")
    if not g.leads:
        g.succeeds("host leaves the other group", "ip", "addr", "del", "239.2.2.5/32", "dev",
                   g.netdev)


def _maddr(g) -> set:
    """All multicast addresses of the interface, of Ethernet and IP; not how many use each."""
    said = g.run("ip", "maddr", "show", "dev", g.netdev).stdout
    return {" ".join(line.split()[:2]) for line in said.splitlines()}


def _mac_list(g) -> None:
    """The interface's list of MAC addresses is the LAN's: groups are not entered there."""
    if g.leads:
        return
    before, faults = _maddr(g), []
    with Shell(g.device) as shell:
        shell("open", 0, 4)
        for verb in ("attach", "detach"):
            for number in range(100):
                if err := shell.err(verb, 0, f"239.3.{number}.1"):
                    faults.append(f"{verb} {number} gives {err}")
            if verb == "attach" and len(g.nic("groups")) < 100:
                faults.append("device has fewer than 100 groups")
        if groups := g.nic("groups"):
            faults.append(f"device still has {len(groups)} groups")
    if changed := before ^ _maddr(g):
        faults.append(f"the interface's addresses changed: {sorted(changed)}")
    g.check("100 groups come and go: MAC list and group table as before", not faults,
            "; ".join(faults))


def _no_address(g) -> None:
    """The group decides, not the table of our addresses."""
    if not g.leads:
        g.succeeds("interface loses its IPv4 address", "ip", "addr", "del", f"{g.ip}/24",
                   "dev", g.netdev)
        g.check("its GID is gone", g.wait(lambda: g.gid_index(g.ip) is None), "not in 30 s")
    _exchange(g, "group is served on an interface without an IPv4 address", "239.2.3.1",
              address="-")
    if not g.leads:
        g.succeeds("interface gets its IPv4 address back", "ip", "addr", "add",
                   f"{g.ip}/24", "dev", g.netdev)
        g.check("its GID is back", g.wait(g.device_ready), "not in 30 s")


def _rights(g) -> None:
    """Q_Keys with the top bit are for those who may make raw packets."""
    if not g.leads:
        return
    for path in Path("/dev/infiniband").glob("uverbs*"):
        path.chmod(0o666)
    for who, options, want in (("root", {}, ""), ("anybody", {"user": 65534}, "EPERM")):
        with Shell(g.device, **options) as shell:
            if said := shell.err("open", 0, 4):
                g.check(f"{who} makes a queue pair", False, f"open gives {said}")
                continue
            g.equal(f"Q_Key 0x80000000 as {who} gives {want or 'success'}",
                    shell.err("qkey", 0, "0x80000000"), want)
            g.equal(f"Q_Key 0x11111111 as {who} gives success",
                    shell.err("qkey", 0, "0x11111111"), "")


def _blocked_loopback(g) -> None:
    if g.leads:
        with Shell(g.device) as shell:
            g.equal("a queue pair that blocks its own multicast is EOPNOTSUPP",
                    shell.err("flag"), "EOPNOTSUPP")


def _mtus(g) -> None:
    """What the port promises fits into a frame, is delivered, and nothing longer is."""
    for mtu in MTUS:
        g.succeeds(f"netdev takes MTU {mtu}", "ip", "link", "set", g.netdev, "mtu", mtu)
        g.check(f"netdev MTU {mtu}: port is active", g.wait(g.device_ready), "not in 30 s")
        largest = max(m for m in (256, 512, 1024, 2048, 4096) if m + HEADERS <= mtu)
        # The driver hears of it from a work queue.
        g.wait(lambda want=largest: g.device_attribute("active_mtu") == want, 5)
        found = g.device_attribute("active_mtu")
        g.check(f"netdev MTU {mtu}: the port promises no more than a frame carries",
                0 < found <= largest, f"active_mtu is {found}, {largest} fits")
        g.sync()
        if g.leads:
            g.ktap(f"netdev MTU {mtu}", "mcast-check", "--only", "MTU", *g.peers)
        else:
            g.succeeds(f"netdev MTU {mtu}: follower served", "mcast-check", "--follow",
                       timeout=120)
        g.sync()
    g.succeeds("netdev takes MTU 1500", "ip", "link", "set", g.netdev, "mtu", 1500)
    g.check("port is active at the end", g.wait(g.device_ready), "not in 30 s")
    g.wait(lambda: g.device_attribute("active_mtu") == 1024, 5)
    g.sync()


def _perftest(g) -> None:
    """perftest joins without IGMP, and both sides know the group by option -M."""
    index = g.gid_index(g.ip)
    for program, options in (("ib_send_bw", ("-n", 500, "-s", 1024)),
                             ("ib_send_bw", ("-n", 100, "-a")),
                             ("ib_send_lat", ("-n", 200, "-s", 64))):
        words = [program, "-d", g.device, "-c", "UD", "-g", "-M", MGID, "-x", index, *options]
        name = f"perftest: {' '.join(map(str, (program, *options)))}"
        done = perftest.pair(g, name, words, g.peers[0] if g.leads else None, LIMIT)
        g.check(name if g.leads else f"{name}: server", done.returncode == 0,
                done.stdout[-400:])


#: A receiver has room for 512 datagrams: if it got more, it has taken some and made room.
_TAKEN = 600


def _members(g, group: str) -> list:
    """Numbers of the queue pairs that this guest's card serves in the group."""
    return [member["qp"] for entry in g.nic("groups") if entry["ip"] == group
            for member in entry["members"]]


def _perftest_receivers(g) -> None:
    """One sender, three receivers. Two of them have no connection to it: one here, one there.

    Datagrams are lost to a receiver that has not begun or whose queue is full, and nobody
    sends them again: the sender goes on until each has had many. The card counts, since
    a program that reports looks at the machine's clocks, see `perftest`: none of them lives
    long enough for a report.
    """
    words = ("ib_send_bw", "-d", g.device, "-c", "UD", "-g", "-M", MGID, "-x",
             g.gid_index(g.ip), "-s", 512, "--run_infinitely", "-D", 10 * LIMIT)
    name = "perftest: one sender, three receivers"
    with ExitStack() as running:
        def start(*more):
            return running.enter_context(Background(*words, *more))

        def attached(count: int):
            """The queue pair that is attached as number `count`."""
            g.check(f"{name}: {count} of them here attached", g.wait(
                lambda: len(_members(g, GROUP)) == count, LIMIT), f"device: {g.nic('groups')}")
            return next((qp for qp in _members(g, GROUP) if qp not in receivers.values()), None)

        receivers = {}
        start("--connectionless")
        receivers["without a connection"] = attached(1)
        if not g.leads:
            server = start()
            g.check(f"{name}: server listens", g.wait(lambda: perftest.listens(g), LIMIT),
                    server.said()[-400:])
        g.sync()
        if g.leads:
            sender = start(g.peers[0])
        else:
            # Not before there is a connection.
            receivers["connected"] = attached(2)
        for kind, number in receivers.items():
            def taken(qp=number) -> int:
                return {each["qp"]: each["received"] for each in g.nic("qps")}.get(qp, 0)
            g.check(f"{name}: the one {kind} takes datagrams",
                    g.wait(lambda at=taken: at() > _TAKEN, LIMIT), f"{taken()} at the card")
        g.sync()
        if g.leads:
            g.check(f"{name}: sender", sender.process.poll() is None, sender.said()[-400:])
    g.equal(f"{name}: killed, they leave no group in the device", g.nic("groups"), [])
    g.sync()


def _mixed_families(g) -> None:
    """An address handle has one family: the source's and the group's."""
    if not g.leads:
        return
    before = g.nic("state")["rdma"]["arps"]
    with Shell(g.device) as shell:
        shell("open", 0, 4)
        shell("open", 1, 6)
        g.equal("address handle from an IPv4 source to an IPv6 group is EINVAL",
                shell.err("address", 0, "ff01::1"), "EINVAL")
        g.equal("address handle from an IPv6 source to an IPv4 group is EINVAL",
                shell.err("address", 1, "239.1.1.1"), "EINVAL")
    g.equal("refused address handles leave the ARP table as it is",
            g.nic("state")["rdma"]["arps"], before)
