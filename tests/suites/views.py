# SPDX-License-Identifier: GPL-2.0
"""What operators see: debugfs, driver details of rdma, trace events, messages."""

import errno
import ipaddress
import json
import os
import re
import subprocess
import time
from pathlib import Path

from irdma_suites.shell import Shell
from irdma_suites.suite import Suite

SUITE = Suite(
    about="debugfs, rdma resource show, trace events and messages tell what is so",
    guests=1,
    # All of it is irdma_rs's own.
    drivers=("irdma_rs",),
    kernels=("stock", "debug"),
    # Unloads, resets and fills the log.
    alone=True,
    timeout=300)

DEBUGFS = Path("/sys/kernel/debug/irdma_rs")
TRACING = Path("/sys/kernel/tracing")
EVENTS = TRACING / "events/irdma_rs"
#: Failing attaches of a storm.
STORM = 1000
#: Messages of one kind that get through at once, and the time until more do.
BURST, INTERVAL = 10, 5.0
#: Groups of the long list: more than one read of debugfs brings.
MANY = 700


def guest(g) -> None:
    """One after the other: each part leaves nothing behind."""
    folder = _folder(g)
    if not folder:
        return
    _groups(g, folder)
    _many(g, folder)
    _details(g)
    _commands(g, folder)
    _trace(g)
    _messages(g, folder)
    _removal(g, folder)


def _folder(g):
    """The directory of the device, named as the device is in the log."""
    names = [p.name for p in Path("/sys/bus/auxiliary/devices").glob("ice.roce.*")]
    found = sorted(p.name for p in DEBUGFS.iterdir()) if DEBUGFS.is_dir() else []
    if not g.equal("one directory a device", found, names) or not found:
        return None
    folder = DEBUGFS / found[0]
    g.equal("its files", sorted(p.name for p in folder.iterdir()),
            ["cqp", "limits", "mcast_groups"])
    return folder


# -- groups -----------------------------------------------------------------

def table(text: str) -> list:
    """The lines of a file with a header, each as a dictionary; comments are left out."""
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def groups(folder) -> list:
    return table((folder / "mcast_groups").read_text())


def shown(folder) -> dict:
    """What the driver shows: index -> address, VLAN, MAC, queue pairs."""
    return {int(group["index"]): (group["address"], group["vlan"], group["mac"],
                                  {int(m.split("x")[0]) for m in group["members"].split(",")
                                   if m != "-"})
            for group in groups(folder)}


def real(g) -> dict:
    """The same, as the card has it."""
    return {group["index"]: (str(ipaddress.ip_address(group["ip"])),
                             "-" if group["vlan"] is None else str(group["vlan"]),
                             group["mac"], {m["qp"] for m in group["members"]})
            for group in g.nic("groups")}


def uses(folder, address: str) -> dict:
    """Use counts of a group's members."""
    for group in groups(folder):
        if group["address"] == address and group["members"] != "-":
            return {int(qp): int(n) for qp, n in
                    (m.split("x") for m in group["members"].split(","))}
    return {}


def _agree(g, folder, when: str) -> None:
    g.equal(f"groups {when}: debugfs tells what the card has", shown(folder), real(g))


def _groups(g, folder) -> None:
    v4, v6 = "239.1.7.1", "ff15::7:1"
    before = real(g)
    _agree(g, folder, "at the beginning")
    with Shell(g.device) as shell:
        a, b, c = (shell("open", n, 4)["qpn"] for n in range(3))
        shell("attach", 0, v4)
        _agree(g, folder, "with one member")
        shell("attach", 1, v4)
        shell("attach", 0, v6)
        shell("attach", 2, v6)
        _agree(g, folder, "of both families")
        shell("attach", 1, v4, 0xc001)
        g.equal("uses of members", uses(folder, v4), {a: 1, b: 2})
        g.equal("states", {group["state"] for group in groups(folder)}, {"live"})
        shell("detach", 1, v4, 0xc001)
        shell("detach", 0, v4)
        _agree(g, folder, "after a detach")
        g.equal("uses after the detach", uses(folder, v4), {b: 1})
        g.equal("uses of the other group", uses(folder, v6), {a: 1, c: 1})

        # The device refuses to let go: the caller does not hear of it, operators do.
        g.nic("fault", op="MODIFY_MCAST_GRP", nth=1, count=1, action="fail")
        g.equal("a refused detach succeeds", shell.err("detach", 2, v6), "")
        stale = [group for group in groups(folder) if group["address"] == v6]
        g.equal("a refused detach is shown",
                [(x["state"], x["members"], sorted(x["device"].split(","))) for x in stale],
                [("stale", f"{a}x1", sorted([str(a), str(c)]))])
        g.equal("a later attach makes it whole", shell.err("attach", 2, v6), "")
        _agree(g, folder, "after the repair")
    g.equal("nothing is left of them", real(g), before)
    _agree(g, folder, "at the end")


def _many(g, folder) -> None:
    """A list that needs many reads, in pieces of any size, and while it changes."""
    path = folder / "mcast_groups"
    with Shell(g.device) as shell:
        qpn = shell("open", 0, 4)["qpn"]
        for n in range(MANY):
            shell("attach", 0, f"239.2.{n // 250}.{n % 250 + 1}")
        _agree(g, folder, f"of which there are {MANY}")
        whole = path.read_bytes()
        for size in (7, 100, 4096):
            g.check(f"the same text in reads of {size}", _pieces(path, size) == whole,
                    "the texts differ")
        rows = [line for line in whole.decode().splitlines() if f" {qpn}x1 " in f"{line} "]
        g.equal("a line a group", len(rows), MANY)
        # Every second group goes between two reads; nothing else may be missing or twice.
        with open(path, "rb", buffering=0) as file:
            text = file.read(8192)
            for n in range(0, MANY, 2):
                shell("detach", 0, f"239.2.{n // 250}.{n % 250 + 1}")
            while more := file.read(8192):
                text += more
        seen = [row["address"] for row in table(text.decode())]
        kept = {f"239.2.{n // 250}.{n % 250 + 1}" for n in range(1, MANY, 2)}
        g.check("a list that changes while it is read shows each group once",
                len(seen) == len(set(seen)) and kept <= set(seen),
                f"{len(seen)} lines, {len(set(seen))} groups, "
                f"{len(kept - set(seen))} of {len(kept)} missing")


def _pieces(path, size: int) -> bytes:
    text = b""
    with open(path, "rb", buffering=0) as file:
        while more := file.read(size):
            text += more
    return text


# -- rdma resource show -----------------------------------------------------

def resources(g, kind: str) -> list:
    """Objects of a kind on our device with all details."""
    done = subprocess.run(["rdma", "-dd", "-j", "resource", "show", kind],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"rdma resource show {kind}: {done.stderr.strip()}")
    # The tool marks what a driver says; the names are those of the driver without it.
    return [{key.removeprefix("drv_"): value for key, value in entry.items()}
            for entry in json.loads(done.stdout) if entry["ifname"] == g.device]


def resource(g, qpn: int) -> dict:
    return next((qp for qp in resources(g, "qp") if qp["lqpn"] == qpn), {})


def memberships(entry: dict) -> dict:
    """The groups in the details of a queue pair: index -> text."""
    return {int(key.removeprefix("mcast_")): value for key, value in entry.items()
            if re.fullmatch(r"mcast_\d+", key)}


def _details(g) -> None:
    with Shell(g.device) as shell:
        a, b = (shell("open", n, 4)["qpn"] for n in range(2))
        shell("attach", 0, "239.1.7.2")
        shell("attach", 0, "239.1.7.2", 0xc002)
        shell("attach", 0, "ff15::7:2")
        index = {str(ipaddress.ip_address(x["ip"])): x["index"] for x in g.nic("groups")}
        entry, other = resource(g, a), resource(g, b)
        g.equal("rdma resource show qp: its groups", memberships(entry), {
            index["239.1.7.2"]: "239.1.7.2 uses 2", index["ff15::7:2"]: "ff15::7:2 uses 1"})
        g.equal("rdma resource show qp: their number", entry.get("mcast_groups"), 2)
        g.equal("rdma resource show qp: no groups",
                (other.get("mcast_groups"), memberships(other)), (0, {}))
        card = next(qp for qp in g.nic("qps") if qp["qp"] == a)
        g.equal("rdma resource show qp: the hardware's side",
                [entry.get(key) for key in
                 ("hw_state", "sq_quanta", "send_cqn", "recv_cqn", "queue_set")],
                [card["state"].lower(), card["sq_quanta"], card["send_cq"],
                 card["recv_cq"], card["queue_set"]])
        cqs = {cq["cq"]: cq["entries"] for cq in g.nic("cqs")}
        told = {cq["hw_cqn"]: cq["entries"] for cq in resources(g, "cq") if "hw_cqn" in cq}
        g.equal("rdma resource show cq: number and entries",
                {n: cqs.get(n) for n in told}, told)
        g.check("rdma resource show cq: there are some", bool(told))
        mrs = [mr for mr in resources(g, "mr") if "stag_index" in mr]
        g.check("rdma resource show mr: regions have an index", bool(mrs))

        # More than a message has room for: what does not fit is counted.
        for n in range(200):
            shell("attach", 1, f"239.3.0.{n + 1}")
        entry = resource(g, b)
        listed = memberships(entry)
        g.equal("rdma resource show qp: the number of many groups",
                entry.get("mcast_groups"), 200)
        g.check("rdma resource show qp: as many groups as fit",
                8 <= len(listed) < 200
                and all(re.fullmatch(r"239\.3\.0\.\d+ uses 1", v) for v in listed.values()),
                str(listed))
        g.equal("rdma resource show qp: the other queue pairs are still there",
                {qp["lqpn"] for qp in resources(g, "qp")} >= {a, b}, True)


# -- commands ---------------------------------------------------------------

def commands(folder) -> dict:
    """The file of the control queue: command -> counts."""
    return {row["command"]: {k: int(v) for k, v in row.items() if k != "command"}
            for row in table((folder / "cqp").read_text())}


def _commands(g, folder) -> None:
    ring = (folder / "cqp").read_text().splitlines()[0]
    g.check("cqp: the state of the queue",
            ring.startswith("# state alive error 0 completions events outstanding 0 of "), ring)
    card, told = dict(g.nic("ops")["cqp"]), commands(folder)
    with Shell(g.device) as shell:
        shell("open", 0, 4)
        for _ in range(3):
            shell("attach", 0, "239.1.7.3")
            shell("detach", 0, "239.1.7.3")
    later, tells = dict(g.nic("ops")["cqp"]), commands(folder)
    g.equal("cqp: as many commands as the card carried out",
            {op: n["done"] - told[op]["done"] for op, n in tells.items()
             if n["done"] > told[op]["done"]},
            {op: n - card.get(op, 0) for op, n in later.items() if n > card.get(op, 0)})
    g.check("cqp: the longest time is known", tells["CREATE_MCAST_GRP"]["longest_us"] > 0)
    rows = {row["object"]: row for row in table((folder / "limits").read_text())}
    with Shell(g.device) as shell:
        shell("open", 0, 4)
        shell("attach", 0, "239.1.7.3")
        more = {row["object"]: row for row in table((folder / "limits").read_text())}
    g.equal("limits: a queue pair and a group more",
            [int(more[k]["used"]) - int(rows[k]["used"]) for k in ("qp", "mcast_group")], [1, 1])
    info = g.run("ibv_devinfo", "-v", "-d", g.device).stdout
    limits = {k: int(v) for k, v in re.findall(r"(max_qp|max_mcast_grp):\s+(\d+)", info)}
    g.equal("limits: as the device reports them",
            [int(rows["qp"]["limit"]), int(rows["mcast_group"]["limit"])],
            [limits.get("max_qp"), limits.get("max_mcast_grp")])


# -- trace events -----------------------------------------------------------

def traced() -> list:
    """Events of the driver in the trace: (name, fields)."""
    found = []
    for line in (TRACING / "trace").read_text().splitlines():
        match = re.search(r": (irdma_rs_\w+): (.*)$", line)
        if match:
            found.append((match.group(1),
                          dict(word.split("=", 1) for word in match.group(2).split())))
    return found


def _trace(g) -> None:
    log = next(Path("/sys/bus/auxiliary/devices").glob("ice.roce.*")).name
    mgid, group = "::ffff:239.1.7.4", "239.1.7.4"
    g.equal("trace events are off at first", (EVENTS / "enable").read_text().strip(), "0")
    with Shell(g.device) as shell:
        qpn = shell("open", 0, 4)["qpn"]
        (TRACING / "trace").write_text("")
        (EVENTS / "enable").write_text("1")
        before = dict(g.nic("ops")["cqp"])
        try:
            shell("attach", 0, group)
            index = next(x["index"] for x in g.nic("groups") if x["ip"] == group)
            shell("detach", 0, group)
            done = {op: n - before.get(op, 0) for op, n in g.nic("ops")["cqp"].items()
                    if n > before.get(op, 0)}
            g.nic("fault", op="CREATE_MCAST_GRP", nth=1, count=1, action="fail",
                  major=0xffff, minor=0x0123)
            g.equal("an attach that fails", shell.err("attach", 0, group), "EIO")
            shell("detach", 0, group)
        finally:
            (EVENTS / "enable").write_text("0")
        events = traced()
        shell("attach", 0, group)
        shell("detach", 0, group)
        g.equal("no event when they are off", len(traced()), len(events))

    members = [(name, fields) for name, fields in events if "mcast" in name]
    same = {"dev": log, "qpn": str(qpn), "mgid": mgid, "vlan": "-1"}
    g.equal("events of attach and detach", members, [
        ("irdma_rs_mcast_attach", {**same, "index": str(index), "error": "0"}),
        ("irdma_rs_mcast_detach", {**same, "index": str(index), "error": "0"}),
        ("irdma_rs_mcast_attach", {**same, "index": "0", "error": str(-errno.EIO)})])
    cqp = [fields for name, fields in events if name == "irdma_rs_cqp"]
    good = [f for f in cqp if f["error"] == "0"]
    count = {op: sum(f["op"] == op for f in good) for op in {f["op"] for f in good}}
    g.equal("an event a command", {op: n for op, n in count.items() if "MCAST" in op},
            {op: n for op, n in done.items() if "MCAST" in op})
    g.check("commands take time", all(int(f["duration_ns"]) > 0 for f in good), str(good))
    g.equal("an event of the refused command",
            [{k: v for k, v in f.items() if k not in ("duration_ns", "outstanding")}
             for f in cqp if f["error"] != "0"],
            [{"dev": log, "op": "CREATE_MCAST_GRP", "error": str(-errno.EIO),
              "major": "0xffff", "minor": "0x0123"}])


# -- messages ---------------------------------------------------------------

def messages(g) -> list:
    """The driver's lines in the kernel log, warnings and worse."""
    lines = g.run("dmesg", "--level=emerg,alert,crit,err,warn").stdout.splitlines()
    return [line for line in lines if "irdma_rs" in line]


def _messages(g, folder) -> None:
    group, log = "239.1.7.5", folder.name
    start = commands(folder)["CREATE_MCAST_GRP"]["refused"]
    with Shell(g.device) as shell:
        shell("open", 0, 4)
        old = len(messages(g))
        g.nic("fault", op="CREATE_MCAST_GRP", nth=1, count=1, action="fail",
              major=0xffff, minor=0x8029 - 1)
        shell("attach", 0, group)
        said = messages(g)[old:]
        g.check("a failure is one line with device, command and codes",
                len(said) == 1 and all(word in said[0] for word in
                                       (log, "CREATE_MCAST_GRP", "0xffff/0x8028")), str(said))
        g.equal("success is silent", (shell.err("attach", 0, group), len(messages(g)) - old),
                ("", 1))
        shell("detach", 0, group)

        old, begin = len(messages(g)), time.monotonic()
        g.nic("fault", op="CREATE_MCAST_GRP", nth=1, count=STORM, action="fail")
        errors = {shell.err("attach", 0, group) for _ in range(STORM)}
        took = time.monotonic() - begin
        said = messages(g)[old:]
        bound = BURST * (1 + int(took / INTERVAL) + 1)
        g.equal(f"{STORM} attaches fail", errors, {"EIO"})
        g.check("a storm of failures gives few lines", 0 < len(said) <= bound,
                f"{len(said)} lines in {took:.1f} s, at most {bound} expected")

        # What was left out is told with the next line that is let through.
        extra = 0
        end = time.monotonic() + 4 * INTERVAL
        while time.monotonic() < end:
            g.nic("fault", op="CREATE_MCAST_GRP", nth=1, count=1, action="fail")
            shell("attach", 0, group)
            extra += 1
            more = messages(g)[old + len(said):]
            if more:
                break
            time.sleep(0.5)
        g.nic("fault", clear=True)
        told = messages(g)[old:]
        left = sum(int(n) for line in told for n in re.findall(r"(\d+) like it left out", line))
        g.equal("lines and what they say was left out are all failures",
                len(told) + left, STORM + extra)
        g.equal("debugfs counts every failure",
                commands(folder)["CREATE_MCAST_GRP"]["refused"] - start, STORM + extra + 1)


# -- removal ----------------------------------------------------------------

def _fails(file) -> int:
    """The errno of reading a file that is open, or 0."""
    try:
        os.read(file.fileno(), 64)
    except OSError as error:
        return error.errno
    return 0


def _removal(g, folder) -> None:
    """Files go with the device; those who have one open do no harm."""
    read = "while :; do cat /sys/kernel/debug/irdma_rs/*/* >/dev/null 2>&1; done"
    with subprocess.Popen(["sh", "-c", read]) as reader:
        try:
            for number in range(1, 4):
                with open(folder / "mcast_groups", "rb", buffering=0) as file:
                    file.read(16)
                    g.check(f"unload {number} with an open file",
                            g.run("lab-driver", "unload", timeout=90).returncode == 0)
                    g.equal(f"unload {number}: the open file is dead", _fails(file), errno.EIO)
                    g.equal(f"unload {number}: the files are gone", DEBUGFS.exists(), False)
                g.check(f"load {number}",
                        g.run("lab-driver", "load", timeout=90).returncode == 0
                        and g.wait(g.device_ready, 60))
            before = g.nic("ops")["cqp"].get("CREATE_AEQ", 0)
            with open(folder / "cqp", "rb", buffering=0) as file:
                file.read(16)
                g.nic("reset", kind="pfr")
                back = g.wait(lambda: g.nic("ops")["cqp"].get("CREATE_AEQ", 0) > before, 60)
                g.check("the device comes back from a reset", back)
                g.equal("reset: the open file is dead", _fails(file), errno.EIO)
        finally:
            reader.kill()
    g.check("reset: there are files again", g.wait(lambda: DEBUGFS.is_dir()
                                                   and any(DEBUGFS.iterdir()), 30))
    g.run("ip", "link", "set", g.netdev, "up")
    found = next(DEBUGFS.iterdir(), None)
    g.check("reset: they can be read",
            found is not None and "alive" in (found / "cqp").read_text())
