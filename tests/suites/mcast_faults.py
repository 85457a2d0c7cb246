# SPDX-License-Identifier: GPL-2.0
"""Multicast while the device refuses, answers late or never, or is reset."""

import json
import subprocess

from irdma_suites import driver
from irdma_suites.shell import Shell
from irdma_suites.suite import Suite

SUITE = Suite(
    about="attach and detach that the device refuses, answers late or never; resets",
    guests=1,
    kernels=("stock", "debug"),
    alone=True,
    timeout=420,
    stock_defects={
        r"group that 4 threads make: who is told 0":
            "who attaches while the group is being made is told of the failure, and stays "
            "listed (irdma_attach_mcast)",
        r"^device refuses DESTROY|^device never answers DESTROY|^process killed while the device"
        r"|^device refuses to take a member out":
            "a detach fails with the device, and cannot be repeated: the queue pair stays in "
            "use for ever (irdma_detach_mcast)",
        r"^the driver broke no rule":
            "a group's context is rewritten, or freed, while the device may read it "
            "(irdma_create_mg_ctx, irdma_mcast_cqp_op)",
        r"^kernel does not warn":
            "queue pairs that cannot be destroyed are left to the core, which warns "
            "(irdma_detach_mcast)",
    },
    stock_allow_warn=(r"WARNING: .*(uverbs_main|restrack|refcount)\.[ch]:",
                      r"refcount_t: underflow", r"restrack: "))

#: Longest that one verb may take when the device does not answer.
BOUND_MS = 30000
#: Groups of this suite: 239.61.x.y.
GROUP = "239.61.{}.{}"


def guest(g) -> None:
    """From what leaves the device whole to what does not."""
    _threads(g)
    _refused_destroy(g)
    _refused_modify(g)
    _refused_while_killed(g)
    _left_alone(g)
    _unanswered(g, "never answers CREATE", "CREATE_MCAST_GRP", "swallow")
    _unanswered(g, "answers CREATE too late", "CREATE_MCAST_GRP", "delay")
    _unanswered(g, "never answers DESTROY", "DESTROY_MCAST_GRP", "swallow")
    _reset(g, "function reset", lambda: g.nic("reset", kind="pfr"))
    _reset(g, "critical error", lambda: g.nic("inject", critical=1))
    _unbind(g)
    _storms(g)
    g.equal("kernel does not warn", driver.warnings(), [])
    g.equal("the driver broke no rule of the device", driver.violations(g), [])


def _threads(g) -> None:
    name = "every third MODIFY fails under 7 threads: detach never does"
    if g.driver == "irdma":
        # Its error path works on a list without the lock: the guest may not survive.
        g.ktap("threads", "mcast-race", "--faults", "--only", "refuses a")
        g.skip(name, "irdma_attach_mcast frees a group that others use: not run on stock")
        return
    g.ktap("threads", "mcast-race", "--faults", "-r",
           (2000 if g.long else 200) // g.slowness)


def queue_pairs(g) -> list:
    """Numbers of the queue pairs that the core knows, but QP 1."""
    said = g.run("rdma", "-j", "resource", "show", "qp").stdout
    try:
        return [qp["lqpn"] for qp in json.loads(said) if qp["lqpn"] > 1]
    except (ValueError, KeyError):
        return [said]


def _judge(g, name: str, before: int, faults: list) -> None:
    """One result: the fault was met, nothing else is wrong."""
    if g.struck() == before:
        faults.insert(0, "the fault was never met")
    g.check(name, not faults, "; ".join(faults))


def _wrong(faults: list, what: str, got, want="") -> None:
    if got != want:
        faults.append(f"{what} gives {got or 'success'}, not {want or 'success'}")


def _leftovers(g, faults: list) -> None:
    """After the processes have gone there is nothing of them."""
    if groups := g.nic("groups"):
        faults.append(f"device still has {groups}")
    if pairs := queue_pairs(g):
        faults.append(f"queue pairs {pairs} are still there")


def _refused_destroy(g) -> None:
    """Nobody above could detach again: a detach succeeds whatever the device says."""
    for times in (1, 3):
        faults, before = [], g.struck()
        group = GROUP.format(1, times)
        with Shell(g.device) as shell:
            shell("open", 0, 4)
            _wrong(faults, "attach", shell.err("attach", 0, group))
            g.nic("fault", op="DESTROY_MCAST_GRP", count=times)
            _wrong(faults, "detach", shell.err("detach", 0, group))
            _wrong(faults, "second detach", shell.err("detach", 0, group), "EINVAL")
            _wrong(faults, "destroy", shell.err("close", 0))
            g.nic("fault", clear=True)
            # The group can be had again, and then goes as any other.
            shell("open", 1, 4)
            _wrong(faults, "attach to the same group", shell.err("attach", 1, group))
            shell("send", 1, group, 1, 77)
            shell("mark", 1, group, 78)
            got = shell("collect", 1, 78)
            _wrong(faults, "collect", got["err"])
            if [d["token"] for d in got.get("got", ())] != [77]:
                faults.append(f"got {got}")
            _wrong(faults, "detach", shell.err("detach", 1, group))
            _wrong(faults, "destroy", shell.err("close", 1))
        _leftovers(g, faults)
        _judge(g, f"device refuses DESTROY {times} times: detach succeeds, nothing stays",
               before, faults)


def _refused_modify(g) -> None:
    """The device refuses to take a member out: it is out for the caller, and soon there."""
    faults, before, group = [], g.struck(), GROUP.format(2, 1)
    with Shell(g.device) as shell:
        for number in range(3):
            shell("open", number, 4)
            _wrong(faults, "attach", shell.err("attach", number, group))
        g.nic("fault", op="MODIFY_MCAST_GRP")
        _wrong(faults, "detach", shell.err("detach", 0, group))
        _wrong(faults, "destroy", shell.err("close", 0))
        members = [m for entry in g.nic("groups") for m in entry["members"]]
        if len(members) != 2:
            faults.append(f"after the destruction device lists {members}")
        for number in (1, 2):
            _wrong(faults, "detach", shell.err("detach", number, group))
            _wrong(faults, "destroy", shell.err("close", number))
    _leftovers(g, faults)
    _judge(g, "device refuses to take a member out: queue pair goes, then the member",
           before, faults)


def _refused_while_killed(g) -> None:
    """A process dies, and the device refuses all that is to be undone for it."""
    faults, before, group = [], g.struck(), GROUP.format(3, 1)
    shell = Shell(g.device)
    for number in range(2):
        shell("open", number, 4)
        _wrong(faults, "attach", shell.err("attach", number, group))
    g.nic("fault", op="DESTROY_MCAST_GRP", count=1)
    g.nic("fault", op="MODIFY_MCAST_GRP", count=1)
    shell.process.kill()
    shell.process.wait()
    g.nic("fault", clear=True)
    if pairs := queue_pairs(g):
        faults.append(f"queue pairs {pairs} are still there")
    # Whatever comes next makes up for what was refused.
    with Shell(g.device) as shell:
        shell("open", 0, 4)
        _wrong(faults, "attach", shell.err("attach", 0, group))
        _wrong(faults, "detach", shell.err("detach", 0, group))
    _leftovers(g, faults)
    _judge(g, "process killed while the device refuses: nothing stays", before, faults)


def _left_alone(g) -> None:
    """Nobody does anything more: what the device refused is asked for again after a while."""
    faults, before, group = [], g.struck(), GROUP.format(6, 1)

    def entries():
        return g.nic("state")["rdma"]["arps"]

    at_first = entries()
    with Shell(g.device) as shell:
        shell("open", 0, 4)
        _wrong(faults, "attach", shell.err("attach", 0, group))
        # Takes an address handle, and with it an entry of the ARP table.
        _wrong(faults, "send", shell.err("send", 0, group, 1, 77))
        g.nic("fault", op="DESTROY_MCAST_GRP", count=100)
        g.nic("fault", op="MANAGE_ARP", count=100)
        _wrong(faults, "detach", shell.err("detach", 0, group))
        _wrong(faults, "destroy", shell.err("close", 0))
    if not g.nic("groups") or entries() == at_first:
        faults.append(f"the device refused, and has {g.nic('groups')}, "
                      f"{entries()} ARP entries after {at_first}")
    g.nic("fault", clear=True)
    if not g.wait(lambda: not g.nic("groups") and entries() == at_first, 30):
        faults.append(f"still {g.nic('groups')}, {entries()} ARP entries after {at_first}")
    _leftovers(g, faults)
    _judge(g, "device refuses DESTROY for a while: what is left goes by itself", before, faults)


def _comes_back(g, faults: list, before: int) -> None:
    """The device has been brought up again, once, and works."""
    if (not g.wait(lambda: driver.bringups(g) > before, 90 * g.slowness)
            or not driver.usable(g, 60 * g.slowness)):
        faults.append("the device did not come back in time")
        return
    if driver.bringups(g) != before + 1:
        faults.append(f"brought up {driver.bringups(g) - before} times, not once")
    done = g.run("mcast-check", "--only", "3 members here", timeout=60)
    if done.returncode:
        faults.append(f"traffic afterwards: {done.stdout[-300:]}")
    _leftovers(g, faults)


def _unanswered(g, name: str, op: str, action: str) -> None:
    """A command without an answer: one error in bounded time, then the device is reset."""
    faults, met, before = [], g.struck(), driver.bringups(g)
    first, second = Shell(g.device), Shell(g.device)
    for shell in (first, second):
        shell("open", 0, 4)
    _wrong(faults, "attach before", first.err("attach", 0, GROUP.format(4, 1)))
    g.nic("fault", op=op, action=action)
    if op == "CREATE_MCAST_GRP":
        first.start("attach", 0, GROUP.format(4, 2))
        want = "ETIMEDOUT"
    else:
        first.start("detach", 0, GROUP.format(4, 1))
        want = ""
    g.wait(lambda: g.struck() > met, 10)
    second.start("attach", 0, GROUP.format(4, 3))
    try:
        answer = first.answer(60 * g.slowness)
        _wrong(faults, "the call without an answer", answer["err"], want)
        other = second.answer(60 * g.slowness)
        g.note(f"{name}: call without an answer took {answer['ms']} ms, another process's "
               f"{other['ms']} ms ({other['err'] or 'success'})")
        if max(answer["ms"], other["ms"]) > BOUND_MS * g.slowness:
            faults.append(f"took {answer['ms']} and {other['ms']} ms")
    except (TimeoutError, RuntimeError) as error:
        faults.append(str(error))
    # Now the answer comes, to nobody.
    g.nic("fault", clear=True)
    for shell in (first, second):
        if status := shell.quit(60 * g.slowness):
            faults.append(f"a process did not end well: {status}")
    _comes_back(g, faults, before)
    _judge(g, f"device {name}: an error in time, reset once, all works again", met, faults)


def _members(g) -> Shell:
    """A process with three queue pairs in two groups."""
    shell = Shell(g.device)
    for number in range(3):
        shell("open", number, 4)
        for group in (1, 2):
            shell("attach", number, GROUP.format(5, group))
    return shell


def _reset(g, name: str, order) -> None:
    """The device goes and comes back under a process that is a member."""
    faults, before = [], driver.bringups(g)
    shell = _members(g)
    order()
    _comes_back_under(g, faults, before, shell)
    g.check(f"{name} with members attached: process ends, device works again", not faults,
            "; ".join(faults))


def _comes_back_under(g, faults: list, before: int, shell: Shell) -> None:
    if not g.wait(lambda: driver.bringups(g) > before, 90 * g.slowness):
        faults.append("the device was not brought up again in time")
    if status := shell.quit(60 * g.slowness):
        faults.append(f"the process did not end well: {status}")
    _comes_back(g, faults, before)


def _unbind(g) -> None:
    """The driver is taken away after a critical error, and put back."""
    faults, before = [], driver.bringups(g)
    shell, binding = _members(g), driver.Binding()
    binding.unbind()
    left = g.held()
    for judged_elsewhere in ("violations", "violation_count", *(
            ["left over: arps"] if g.driver == "irdma" else [])):
        left.pop(judged_elsewhere, None)
    if left:
        faults.append(f"device holds {left}")
    if status := shell.quit(60 * g.slowness):
        faults.append(f"the process did not end well: {status}")
    binding.bind()
    _comes_back(g, faults, before)
    g.check("driver unbound with members attached: device empty, then works again",
            not faults, "; ".join(faults))


def _storms(g) -> None:
    """Resets and unbinds while threads attach and detach."""
    if g.driver == "irdma":
        g.skip("resets and unbinds under 8 threads that come and go",
               "stock's list breaks under threads alone, see mcast_races: not run")
        return
    rounds = 10 if g.long else 1
    for number in range(1, rounds + 1):
        for name, order in (("unbind", None), ("reset", lambda: g.nic("reset", kind="pfr"))):
            faults, before = [], driver.bringups(g)
            storm = subprocess.Popen(
                ["mcast-race", "-d", g.device, "-r", "1000000", "--only", "come and go"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if not g.wait(lambda: g.nic("groups"), 30):
                faults.append("the threads made no group")
            if order:
                order()
            else:
                binding = driver.Binding()
                binding.unbind()
                binding.bind()
            g.wait(lambda: driver.bringups(g) > before, 60 * g.slowness)
            storm.kill()
            try:
                storm.wait(60 * g.slowness)
            except subprocess.TimeoutExpired:
                faults.append("the killed process does not end")
            _comes_back(g, faults, before)
            g.check(f"{name} under 8 threads that come and go, round {number}",
                    not faults, "; ".join(faults))
