# SPDX-License-Identifier: GPL-2.0
"""What a suite uses inside a guest."""

import functools
import importlib.machinery
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from . import suite as suite_module
from .ktap import PASS, SKIP

#: Seconds that guests wait for each other: the lab's timeout is to end what hangs.
SYNC = 600
#: Starts a line that is meant for the runner on the host.
MARK = "@suite"


@functools.cache
def nicctl():
    """The program nicctl, as a module: to start it each time takes longer than to ask."""
    loader = importlib.machinery.SourceFileLoader("nicctl", shutil.which("nicctl"))
    spec = importlib.util.spec_from_loader("nicctl", loader)
    found = importlib.util.module_from_spec(spec)
    loader.exec_module(found)
    return found


def emit(*words) -> None:
    print(MARK, *words, flush=True)


class Guest:
    """This guest, its place in the run, and the results of one suite."""

    def __init__(self, suite: str, long: bool = False):
        env = os.environ
        self.suite = suite
        #: Whether to repeat as often as was ever asked for.
        self.long = long
        self.node = int(env["NODE"])
        self.nodes = int(env["NODES"])
        self.driver = env["DRIVER"]
        self.kernel = env.get("KERNEL", "stock")
        #: Factor for limits of time, which are meant for the stock kernel.
        self.slowness = int(env.get("LAB_SLOWNESS", "1"))
        self.device = env.get("RDMA_DEV", "")
        self.netdev = env.get("NETDEV", "")
        self.ip, self.ip6 = env["IP"], env["IP6"]
        self.peers, self.peers6 = env["PEERS"].split(), env["PEERS6"].split()
        self.share = Path("/share")
        self._number = 0
        self._sync = 0

    @property
    def leads(self) -> bool:
        return self.node == 0

    # -- results of the suite itself ----------------------------------------

    def check(self, name: str, passed: bool, reason: str = "") -> bool:
        """One result."""
        if not passed:
            self.note(reason or "not so")
        self._number += 1
        print("ok" if passed else "not ok", self._number, "-", name, flush=True)
        return passed

    def result(self, name: str, outcome) -> None:
        """A test's result that somebody else has found."""
        if outcome.status == SKIP:
            self.skip(name, outcome.reason)
        else:
            self.check(name, outcome.status == PASS, outcome.reason)

    def equal(self, name: str, got, want) -> bool:
        return self.check(name, got == want, f"is {got!r}, not {want!r}")

    def skip(self, name: str, reason: str) -> None:
        self._number += 1
        print("ok", self._number, "-", name, "# SKIP", reason, flush=True)

    def note(self, text) -> None:
        for line in str(text).splitlines():
            print("#", line, flush=True)

    def finish(self) -> None:
        print(f"1..{self._number}", flush=True)

    # -- programs -----------------------------------------------------------

    def ktap(self, label: str, *words) -> None:
        """Run a program that prints KTAP: its results count as the suite's."""
        emit("document", label)
        sys.stdout.flush()
        status = subprocess.run([str(w) for w in words], check=False).returncode
        emit("document-end", status, label)

    def run(self, *words, timeout: float = 60.0):
        """Run a program; gives its CompletedProcess, with stderr in stdout.

        On the debug kernel it may take longer than `timeout`, by the usual factor.
        """
        timeout *= self.slowness
        try:
            return subprocess.run(
                [str(w) for w in words], stdout=subprocess.PIPE, timeout=timeout,
                stderr=subprocess.STDOUT, text=True, check=False, errors="replace")
        except subprocess.TimeoutExpired as expired:
            said = expired.stdout or b""
            if isinstance(said, bytes):
                said = said.decode(errors="replace")
            return subprocess.CompletedProcess(
                words, 124, f"{said}\nnot finished after {timeout:.0f} s")

    def succeeds(self, name: str, *words, timeout: float = 60.0) -> bool:
        """A test that is a program's success."""
        done = self.run(*words, timeout=timeout)
        return self.check(name, done.returncode == 0,
                          f"{' '.join(map(str, words))}: status {done.returncode}: "
                          + " | ".join(done.stdout.strip().splitlines()[-4:]))

    def nic(self, command: str, **arguments):
        """Ask the virtual card; raises RuntimeError if it refuses."""
        request = {"id": time.monotonic_ns(), "cmd": command, **arguments}
        try:
            answer = nicctl().ask(request, 30.0 * self.slowness)
        except nicctl().Failure as failure:
            raise RuntimeError(f"nicctl {command}: {failure.args[0]}") from None
        if not answer.get("ok"):
            raise RuntimeError(f"nicctl {command}: {answer.get('error', 'refused')}")
        return answer.get("result")

    def struck(self) -> int:
        """How many of the faults ordered of the card have struck so far."""
        return self.nic("state")["rdma"]["faults"]["struck"]

    def subscribed(self, group: str, vlan=None) -> bool:
        """Whether the switch sends a group to our port, on this VLAN (0: none) or on any."""
        port = self.nic("state")["port"]["name"]
        return any(one["group"] == group and vlan in (None, one["vlan"])
                   and port in (p["port"] for p in one["ports"])
                   for one in self.nic("members")["groups"])

    def held(self) -> dict:
        """What the RDMA half holds, or held when its control queue was destroyed.

        Without a driver this is to be empty.
        """
        state = self.nic("state")["rdma"]
        found = {k: v for k, v in state.items() if k not in ("faults", "leftovers") and v}
        left = state.get("leftovers") or {}
        found.update((f"left over: {k}", v) for k, v in left.items() if v)
        return found

    def sync(self) -> None:
        """Wait until every guest has come to the same call."""
        self._sync += 1
        subprocess.run(["lab-sync", f"{self.suite}-{self._sync}", str(SYNC)], check=True)

    def wait(self, condition, seconds: float = 30.0) -> bool:
        """Wait until `condition()`, for no longer than `seconds`."""
        end = time.monotonic() + seconds * self.slowness
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    # -- the RDMA device ----------------------------------------------------

    def gids(self) -> dict:
        """Addresses in the port's table: text of the GID -> index, RoCEv2 only."""
        found = {}
        port = Path(f"/sys/class/infiniband/{self.device}/ports/1")
        for index in range(64):
            try:
                kind = (port / f"gid_attrs/types/{index}").read_text().strip()
                gid = (port / f"gids/{index}").read_text().strip()
            except OSError:
                continue
            if kind == "RoCE v2":
                found[gid] = index
        return found

    def gid_index(self, address: str):
        """Index of one of our addresses in the GID table, or None."""
        import ipaddress
        ip = ipaddress.ip_address(address)
        if ip.version == 4:
            ip = ipaddress.ip_address(f"::ffff:{ip}")
        return self.gids().get(ip.packed.hex(":", 2))

    def device_attribute(self, name: str) -> int:
        """A number that ibv_devinfo -v shows of the device, 0 if it does not."""
        said = self.run("ibv_devinfo", "-v", "-d", self.device).stdout
        found = re.search(rf"^\s*{name}:\s+(\d+)", said, re.MULTILINE)
        return int(found.group(1)) if found else 0

    def find_device(self) -> str:
        """Name of the RDMA device on our interface now, or ""."""
        for folder in Path("/sys/class/infiniband").glob("*"):
            try:
                if (folder / "ports/1/gid_attrs/ndevs/0").read_text().strip() == self.netdev:
                    return folder.name
            except OSError:
                continue
        return ""

    def device_ready(self) -> bool:
        """Whether there is a device, active and with both addresses."""
        self.device = self.find_device()
        if not self.device:
            return False
        os.environ["RDMA_DEV"] = self.device
        try:
            state = Path(f"/sys/class/infiniband/{self.device}/ports/1/state").read_text()
        except OSError:
            return False
        return ("ACTIVE" in state and self.gid_index(self.ip) is not None
                and self.gid_index(self.ip6) is not None)


def main(names, long: bool = False) -> int:
    """Run suites in this guest, one after the other."""
    for name in names:
        guest = Guest(name, long)
        if subprocess.run(["lab-sync", f"suite-{name}", str(SYNC)], check=False).returncode:
            return 1
        emit("begin", name)
        try:
            suite_module.module(name).guest(guest)
        except Exception as error:  # a broken suite must not stop the others
            guest.check("the suite ran to its end", False,
                        f"{type(error).__name__}: {error}")
        guest.finish()
        emit("end", name)
    return 0
