# SPDX-License-Identifier: GPL-2.0
"""What happens to a port while groups are in use: link, interface, addresses, MTU, MAC."""

from pathlib import Path

from irdma_suites import fabric, port
from irdma_suites.driver import usable
from irdma_suites.shell import Shell
from irdma_suites.suite import Suite
from irdma_suites.traffic import Traffic, expect

SUITE = Suite(
    about="link, interface, addresses, MTU and MAC change under attached groups: events, "
          "state, GIDs, traffic",
    guests=3,
    snoop="interval=5,response=1",
    switches="nic0,nic1/nic2",
    timeout=300)

#: Joined and attached before anything happens.
GROUPS = {4: "239.7.1.1", 6: "ff0e::7:1"}
#: What node 1 sends to node 2.
BACK = "239.7.2.1"
#: A second address of each family.
MORE = {4: "10.98.7.2", 6: "fd98:7::2"}
NEW_MAC = "02:e8:10:aa:bb:cc"
COUNT = 3
#: The datagram that is sent from a second address.
FROM_MORE = 700_000


def guest(g) -> None:
    """Things happen to node 1. Node 0 sends to it, node 2 hears what it sends itself."""
    with port.Events(g.device) as events:
        bench = Bench(g, events)
        bench.step("before anything happens")
        _link(bench)
        _interface(bench)
        _addresses(bench)
        _mtu(bench)
        _mac(bench)
        bench.close()


class Bench:
    """What the cases share: groups that were there before, a way back, and events."""

    def __init__(self, g, events):
        self.g = g
        self.events = events
        self.changes = g.node == 1
        self.to = {}
        self._joined = []
        self._token = 0
        for family, group in GROUPS.items():
            traffic = self.to[family] = Traffic(g, f"IPv{family}", family)
            if self.changes:
                self._listen(traffic, family, group)
            traffic.ready()
        self.back = Traffic(g, "back", sender=1)
        if g.node == 2:
            self._listen(self.back, 4, BACK)
        self.back.ready()
        if self.changes:
            g.check("a program listens for events", g.wait(self.events.listens),
                    self.events.said())
        self.members()

    def _listen(self, traffic: Traffic, family: int, group: str) -> None:
        shell = Shell(self.g.device)
        said = shell("open", 0, family)
        err = said["err"] or shell.err("attach", 0, group)
        self.g.check(f"attached to {group}", not err, err)
        traffic.listen(shell, 0, said.get("qpn", 0))
        self._joined.append(fabric.join(group, self.g.netdev))

    def members(self) -> None:
        """Waits until the switches know who wants what."""
        wanted = {(group, 0): {"nic1"} for group in GROUPS.values()}
        wanted.update({(BACK, 0): {"switch0-1"}, (BACK, 1): {"nic2"}})
        if self.g.leads:
            found = {}

            def known():
                found.update({key: fabric.ports_of(self.g, *key) for key in wanted})
                return found == wanted
            self.g.check("switches know the members", self.g.wait(known), f"{found}")
        self.g.sync()

    def step(self, name: str, *families: int) -> None:
        """The groups attached long ago get what is sent now, and so does the way back."""
        self.members()
        for family in families or GROUPS:
            first = self._token
            self._token += COUNT
            got = self.to[family].shoot(("send", 0, GROUPS[family], COUNT, first))
            if self.changes:
                expect(self.g, f"{name}: IPv{family} group attached before gets everything",
                       got, range(first, self._token))
        first = self._token
        self._token += COUNT
        got = self.back.shoot(("send", 0, BACK, COUNT, first))
        if self.g.node == 2:
            expect(self.g, f"{name}: what the port sends arrives", got,
                   range(first, self._token))

    def event(self, name: str, *wanted: str) -> None:
        """Events come; those before the last `forget` do not count."""
        events = self.events
        self.g.check(f"{name}: event {' and '.join(wanted)}",
                     self.g.wait(lambda: set(wanted) <= set(events.seen())),
                     f"only {events.seen()}")

    def state(self, name: str, wanted: str) -> None:
        """All tools agree on the state of the port."""
        g, physical = self.g, "LINK_UP" if wanted == "ACTIVE" else "DISABLED"
        g.check(f"{name}: port is {wanted}",
                g.wait(lambda: port.state(g.device) == wanted), port.state(g.device))
        g.equal(f"{name}: rdma link", port.link(g), f"{wanted} {physical}")
        g.equal(f"{name}: ibv_devinfo", port.devinfo(g, "state"), f"PORT_{wanted}")

    def close(self) -> None:
        """All goes; the device holds nothing of it."""
        for traffic in (*self.to.values(), self.back):
            traffic.close()
        for joined in self._joined:
            joined.close()
        self.g.equal("no group is left in the device", self.g.nic("groups"), [])


def _carrier(g) -> str:
    try:
        return Path(f"/sys/class/net/{g.netdev}/carrier").read_text().strip()
    except OSError:
        return "interface is down"


def _link(bench: Bench) -> None:
    """The cable is pulled and plugged in."""
    g = bench.g
    if bench.changes:
        bench.events.forget()
        g.nic("link", up=False)
        bench.event("link down", "PORT_ERR")
        bench.state("link down", "DOWN")
        g.equal("link down: carrier", _carrier(g), "0")
        g.check("link down: addresses stay in the GID table",
                g.gid_index(g.ip) is not None and g.gid_index(g.ip6) is not None,
                f"{g.gids()}")
        bench.events.forget()
        g.nic("link", up=True)
        bench.event("link up", "PORT_ACTIVE")
        bench.state("link up", "ACTIVE")
    bench.step("after the link came back")


def _interface(bench: Bench) -> None:
    """The interface is taken down and up. The kernel takes IPv6 addresses with it."""
    g = bench.g
    if bench.changes:
        bench.events.forget()
        g.succeeds("interface down", "ip", "link", "set", g.netdev, "down")
        bench.event("interface down", "PORT_ERR", "GID_CHANGE")
        bench.state("interface down", "DOWN")
        g.check("interface down: its IPv6 address leaves the GID table",
                g.wait(lambda: g.gid_index(g.ip6) is None), f"{g.gids()}")
        bench.events.forget()
        g.check("interface up: the device is as before", usable(g), "not in 60 s")
        bench.event("interface up", "PORT_ACTIVE", "GID_CHANGE")
        bench.state("interface up", "ACTIVE")
    bench.step("after the interface came back")


def _addresses(bench: Bench) -> None:
    """Addresses come, are sent from, and go."""
    g = bench.g
    for family, length in ((4, 24), (6, 64)):
        address, name = MORE[family], f"IPv{family} address"
        if bench.changes:
            bench.events.forget()
            words = ("dev", g.netdev, *(["nodad"] if family == 6 else []))
            g.succeeds(f"{name} added", "ip", "addr", "add", f"{address}/{length}", *words)
            bench.event(f"{name} added", "GID_CHANGE")
            g.check(f"{name} added: it is in the GID table",
                    g.wait(lambda a=address: g.gid_index(a) is not None), f"{g.gids()}")
        if family == 4:
            _send_from(bench, address)
        if bench.changes:
            bench.events.forget()
            g.succeeds(f"{name} removed", "ip", "addr", "del", f"{address}/{length}",
                       "dev", g.netdev)
            bench.event(f"{name} removed", "GID_CHANGE")
            g.check(f"{name} removed: it is not in the GID table",
                    g.wait(lambda a=address: g.gid_index(a) is None), f"{g.gids()}")
            g.check(f"{name} removed: the others stay",
                    g.gid_index(g.ip) is not None and g.gid_index(g.ip6) is not None,
                    f"{g.gids()}")
    bench.step("after addresses came and went")


def _send_from(bench: Bench, address: str) -> None:
    """What a queue pair with the new address sends bears it."""
    g, got = bench.g, None
    if bench.changes:
        with Shell(g.device) as shell:
            said = shell("bind", 0, address)
            err = said["err"] or shell.err("send", 0, BACK, 1, FROM_MORE)
            g.check("a queue pair sends from the new address", not err, err)
    got = bench.back.shoot()
    if g.node == 2:
        g.equal("the new address is the source of what it sent",
                [(d["from"], d["token"], d["right"]) for d in got[0]],
                [(address, FROM_MORE, True)])


def _mtu(bench: Bench) -> None:
    """The MTU grows and shrinks."""
    g = bench.g
    for mtu, path in ((9000, "4096"), (1500, "1024")):
        name = f"MTU {mtu}"
        if bench.changes:
            g.succeeds(f"{name}: interface takes it", "ip", "link", "set", g.netdev, "mtu",
                       mtu)
            g.check(f"{name}: active_mtu is {path}",
                    g.wait(lambda p=path: port.devinfo(g, "active_mtu") == p),
                    port.devinfo(g, "active_mtu"))
            g.check(f"{name}: port is active with its addresses", g.wait(g.device_ready),
                    "not in 30 s")
        bench.step(f"after {name}")


def _first_gid(g) -> str:
    """That of the first index, which is the default GID. The interface may have kept an
    address of its own that equals the one before."""
    return Path(f"/sys/class/infiniband/{g.device}/ports/1/gids/0").read_text().strip()


def _default_gid(mac: str) -> str:
    """The GID that the core makes of a MAC address: link-local with an EUI-64."""
    octets = bytes.fromhex(mac.replace(":", ""))
    eui = bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:]
    return (bytes.fromhex("fe80000000000000") + eui).hex(":", 2)


def _mac(bench: Bench) -> None:
    """The MAC address changes, and changes back."""
    g = bench.g
    old = Path(f"/sys/class/net/{g.netdev}/address").read_text().strip()
    for before, now, name in ((old, NEW_MAC, "another MAC address"),
                              (NEW_MAC, old, "the first MAC address again")):
        if bench.changes:
            bench.events.forget()
            g.succeeds(f"{name}: interface takes it", "ip", "link", "set", "dev", g.netdev,
                       "address", now)
            bench.event(name, "GID_CHANGE")
            g.check(f"{name}: the default GID is made of it",
                    g.wait(lambda n=now: _first_gid(g) == _default_gid(n)), f"{g.gids()}")
            g.check(f"{name}: port is active with its addresses", g.wait(g.device_ready),
                    "not in 30 s")
        g.sync()
        # Neighbours believe what they knew until they ask anew.
        g.run("ip", "neigh", "flush", "dev", g.netdev)
        # The core takes all addresses out of the GID table and puts them in anew.
        bench.back.reopen()
        g.sync()
        bench.step(name)
        if bench.changes:
            sent = [frame["hex"] for frame in g.nic("frames") if frame["dir"] == "tx"
                    and frame["hex"].startswith(_group_mac(BACK))]
            g.equal(f"{name}: it is the source of what the port sends",
                    sent[-1][12:24] if sent else "nothing", now.replace(":", ""))
            _unicast(bench, name, before, now)


def _group_mac(group: str) -> str:
    _, b, c, d = map(int, group.split("."))
    return f"01005e{b & 0x7f:02x}{c:02x}{d:02x}"


def _unicast(bench: Bench, name: str, before: str, now: str) -> None:
    """Datagrams for queue pairs come by the new address and no more by the old one."""
    g = bench.g
    with Shell(g.device) as shell:
        qpn = shell("open", 0, 4)["qpn"]

        def received() -> int:
            return {qp["qp"]: qp for qp in g.nic("qps")}[qpn]["received"]

        # They come in this order: when the last has been taken, no other will be.
        for mac in (before, before, now):
            g.nic("inject", datagram=True, to=g.ip, mac=mac, qpn=qpn, size=64)
        g.wait(lambda: received() > 0, 10)
        g.equal(f"{name}: the one datagram to it is taken, two to the one before are not",
                received(), 1)
