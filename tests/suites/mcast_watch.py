# SPDX-License-Identifier: GPL-2.0
"""The kernel's own consumer, mcast_watch, on any driver: what a sender in another guest sends."""

import subprocess
import threading
from pathlib import Path

from irdma_suites.suite import Suite

SUITE = Suite(
    about="a kernel consumer receives multicast, counts exactly and goes cleanly",
    guests=2,
    drivers=("irdma_rs", "irdma", "rxe"),
    kernels=("stock", "debug"),
    modules=True,
    timeout=300)

#: Where the module shows its directories.
ROOT = Path("/sys/kernel/debug/mcast_watch")
V4, V4_LATER, V6, NOBODYS = "239.7.1.1", "239.7.1.2", "ff0e::7:1", "239.7.1.9"

#: Parameters that are wrong, and what the kernel log has to say about them.
BAD = {
    "groups=239.7.1": 'groups: "239.7.1": neither an IPv4 nor an IPv6 address',
    f"groups={V4},10.0.0.1": 'groups: "10.0.0.1": not a multicast address',
    f"groups={V4}@0x10000": f'groups: "{V4}@0x10000": the LID is not a number of 16 bits',
    f"groups={V4},": 'groups: "": neither an IPv4 nor an IPv6 address',
    "lid=0x10000": "lid: 0x10000 is more than 16 bits",
    "port=0": "port: 0 is none, ports are numbered from 1",
}


def guest(g) -> None:
    """Node 0 watches, node 1 sends."""
    (_watch if g.leads else _send)(g)


# -- the sender -------------------------------------------------------------


def _send(g) -> None:
    def send(count, size, group):
        g.succeeds(f"sends {count} of {size} octets to {group}",
                   "mcast-send", "-d", g.device, "-n", count, "-s", size, group)

    g.sync()  # groups joined
    send(100, 256, V4)
    send(50, 64, V6)
    send(20, 64, NOBODYS)
    g.sync()
    g.sync()  # one group joined, one left
    send(30, 1024, V4_LATER)
    send(10, 64, V4)
    g.sync()
    for _ in ("unload", "removal of the device"):
        g.sync()
        with _Traffic(g):
            g.sync()
        g.sync()  # at rest
    g.sync()  # device back
    send(40, 128, V4)
    g.sync()


class _Traffic:
    """Sends to a group until the end of the block."""

    def __init__(self, g):
        self._g, self._stop = g, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._rounds = 0

    def _run(self):
        while not self._stop.is_set():
            done = subprocess.run(["mcast-send", "-d", self._g.device, "-n", "50", V4],
                                  stdout=subprocess.DEVNULL, check=False)
            if done.returncode:
                return
            self._rounds += 1

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self._g.check("traffic went on all the time", self._rounds > 0, "a send failed")


# -- the watcher ------------------------------------------------------------


def _watch(g) -> None:
    _bad_parameters(g)

    g.check("loads with two groups", *_load(g, f"groups={V4}@0xc001,{V6}"))
    g.equal("LIDs are as given, in host order",
            {name: group["lid"] for name, group in _state(g).groups.items()},
            {V4: "0xc001", V6: "0xc000"})
    _members(g, "loaded", {V4, V6})
    g.sync()
    g.sync()  # sent
    _counts(g, V4, 100, 256, g.peers[0])
    _counts(g, V6, 50, 64, g.peers6[0])
    g.equal("what was sent to another group did not come", _state(g).device["stray"], 0)

    _changes(g)
    g.sync()
    g.sync()  # sent
    _counts(g, V4_LATER, 30, 1024, g.peers[0])
    _counts(g, V6, 50, 64, g.peers6[0])
    g.equal("what was sent to a group that was left did not come",
            (_state(g).device["stray"], V4 in _state(g).groups), (0, False))
    g.check("joins the group again", *_write(g, "join", V4))

    g.sync()  # traffic
    came = g.wait(lambda: _packets(g, V4) > 0)
    unloaded, said = _unload(g)
    g.check("unloads with traffic coming in", came and unloaded, said or "no traffic came")
    _gone(g, "unloaded")
    g.sync()
    g.sync()  # sender at rest

    g.check("loads again", *_load(g, f"groups={V4}", f"device={g.device[:3]}*"))
    g.sync()  # traffic
    came = g.wait(lambda: _packets(g, V4) > 0)
    _remove_device(g)
    g.check("device goes with traffic coming in", came, "no traffic came")
    g.equal("its directory is gone", sorted(p.name for p in ROOT.glob("*")), [])
    g.sync()
    g.sync()  # sender at rest
    _return_device(g)
    if g.check("device is back", g.wait(g.device_ready, 60), "not within 60 s"):
        _members(g, "device back", {V4})
    g.sync()
    g.sync()  # sent
    _counts(g, V4, 40, 128, g.peers[0])

    g.check("unloads at the end", *_unload(g))
    _gone(g, "at the end")


def _bad_parameters(g) -> None:
    for parameter, message in BAD.items():
        loaded, said = _load(g, parameter)
        g.check(f"refuses {parameter}", not loaded and "Invalid parameters" in said, said)
        g.check(f"says why: {message}", f"mcast_watch: {message}" in _log(g), _log(g)[-300:])
        left = [str(p) for p in (ROOT, Path("/sys/module/mcast_watch")) if p.exists()]
        g.equal(f"leaves nothing after {parameter}", left + _objects(g), [])


def _changes(g) -> None:
    """Groups come and go by the files."""
    g.check("joins a group by its file", *_write(g, "join", f"{V4_LATER}@0"))
    g.check("leaves a group by its file", *_write(g, "leave", V4))
    _members(g, "changed", {V4_LATER, V6})
    for file, text, error in (("join", V4_LATER, "File exists"),
                              ("leave", V4, "No such file or directory"),
                              ("join", "fe80::1", "Invalid argument"),
                              ("join", f"{V4},nonsense", "Invalid argument")):
        written, said = _write(g, file, text)
        g.check(f"{file} refuses {text}", not written and error in said, said or "accepted")
    _members(g, "refused", {V4_LATER, V6})


def _counts(g, group: str, packets: int, size: int, sender: str) -> None:
    """What `packets` datagrams of `size` octets from one sender have to give."""
    g.wait(lambda: _packets(g, group) >= packets)
    found = _state(g).groups.get(group, {"sources": {}})
    want = {"packets": packets, "bytes": packets * size}
    g.equal(f"{group} has every datagram",
            {key: found.get(key) for key in want}, want)
    g.equal(f"{group} has one sender, the right one",
            [(address, tally) for (address, _), tally in found["sources"].items()],
            [(sender, want)])


def _members(g, when: str, groups: set) -> None:
    """The groups by the module, by the net device and, on a card, by the device."""
    g.equal(f"{when}: groups by debugfs", set(_state(g).groups), groups)
    listed = g.run("ip", "maddr", "show", "dev", g.netdev).stdout.split()
    g.equal(f"{when}: groups by the net device",
            {word for word in listed if word.startswith(("239.7.", "ff0e:"))}, groups)
    if g.driver != "rxe":
        g.equal(f"{when}: number of groups by the device", len(g.nic("groups")), len(groups))


def _gone(g, when: str) -> None:
    """Nothing of the module is left."""
    left = [str(p) for p in (ROOT, Path("/sys/module/mcast_watch")) if p.exists()]
    listed = g.run("ip", "maddr", "show", "dev", g.netdev).stdout.split()
    left += [word for word in listed if word.startswith(("239.7.", "ff0e:"))]
    if g.driver != "rxe":
        left += g.nic("groups")
    g.equal(f"{when}: nothing is left", left + _objects(g), [])


def _objects(g) -> list:
    """Verbs objects that belong to the module."""
    return [line for kind in ("pd", "cq", "qp", "mr")
            for line in g.run("rdma", "resource", "show", kind).stdout.splitlines()
            if "mcast_watch" in line]


# -- the device -------------------------------------------------------------


def _remove_device(g) -> None:
    if g.driver == "rxe":
        g.check("rxe device is deleted", *_said(g.run("rdma", "link", "delete", g.device)))
        return
    device = _auxiliary()
    (device / "driver/unbind").write_text(device.name)


def _return_device(g) -> None:
    if g.driver == "rxe":
        g.check("rxe device is added", *_said(g.run(
            "rdma", "link", "add", g.device, "type", "rxe", "netdev", g.netdev)))
        return
    driver = {"irdma_rs": "irdma_rs", "irdma": "irdma"}[g.driver]
    found = list(Path("/sys/bus/auxiliary/drivers").glob(f"*{driver}*"))
    for folder in found:
        try:
            (folder / "bind").write_text(_auxiliary().name)
            return
        except OSError:
            continue
    g.check("driver is bound again", False, f"none of {found} takes {_auxiliary()}")


def _auxiliary() -> Path:
    return next(Path("/sys/bus/auxiliary/devices").glob("ice.roce.*"))


# -- the module -------------------------------------------------------------


def _load(g, *parameters) -> tuple:
    return _said(g.run("lab-driver", "insert", "mcast_watch", *parameters))


def _unload(g) -> tuple:
    return _said(g.run("rmmod", "mcast_watch"))


def _said(done) -> tuple:
    return done.returncode == 0, done.stdout.strip()


def _log(g) -> str:
    return g.run("dmesg").stdout


def _write(g, file: str, text: str) -> tuple:
    """Write to a file of the device; as `_said`."""
    try:
        (ROOT / g.device / file).write_text(text + "\n")
    except OSError as error:
        return False, error.strerror
    return True, ""


class _state:
    """What the module shows of the device now."""

    def __init__(self, g):
        self.device, self.groups = {}, {}
        try:
            text = (ROOT / g.device / "groups").read_text()
        except OSError:
            return
        group = None
        for line in text.splitlines():
            kind, *words = line.split()
            if kind == "qp":
                self.device = {"qp": int(words[0]), "lost": int(words[2]),
                               "stray": int(words[5])}
                continue
            tally = {"packets": int(words[words.index("packets") + 1]),
                     "bytes": int(words[words.index("bytes") + 1])}
            if kind == "group":
                group = self.groups[words[0]] = {"lid": words[2], "sources": {}, **tally}
            elif kind == "source":
                group["sources"][words[0], int(words[2])] = tally
            else:
                group["others"] = tally


def _packets(g, group: str) -> int:
    return _state(g).groups.get(group, {}).get("packets", 0)
