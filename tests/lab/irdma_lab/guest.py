# SPDX-License-Identifier: GPL-2.0
"""One virtual machine: its command line, its channels to the lab, its end."""

import asyncio
import json
import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from irdma_env.progress import tail

from . import klog, process
from .options import E810_DRIVERS

#: Parameters of the guests' kernel.
KERNEL_PARAMETERS = [
    "console=ttyS0", "panic=-1", "mitigations=off", "audit=0", "printk.devkmsg=on",
    # The machine under the guests may be slow and busy; that is no kernel's fault.
    "rcupdate.rcu_cpu_stall_timeout=120", "sysctl.kernel.watchdog_thresh=60",
    # What a processor measures while others use the machine may make delays endless.
    "lpj=10000000",
    # Nor is a timer broken that does not tick in time on a busy machine.
    "no_timer_check",
    # Addresses are ours alone: no need to wait until nobody objects to them.
    "sysctl.net.ipv6.conf.all.accept_dad=0", "sysctl.net.ipv6.conf.default.accept_dad=0",
    "firmware_class.path=/run/lab/firmware",
]
#: More of them for the debug kernel.
DEBUG_PARAMETERS = [
    # The first report must not hide the next.
    "kasan_multi_shot",
    "workqueue.watchdog_thresh=240",
]
#: More of them to look for leaks.
LEAK_PARAMETERS = [
    "kmemleak=on",
    # A cache without debugging keeps, in arrays for each processor, stale pointers to what
    # it has given out ("sheaves"), and kmemleak takes those for references.
    "slab_debug=F",
]
#: What a guest is at before its first program says what it is at.
BOOTING = "starting"
#: Seconds it may be at that; a busy machine needs a tenth of them.
BOOT_TIMEOUT = 180.0
#: Seconds a guest has to power off after its command.
POWEROFF_TIMEOUT = 30.0


@dataclass(frozen=True)
class Seat:
    """A guest's place in the run."""

    node: int
    driver: str
    #: Number of its NIC, or of its fabric port, among those of its kind.
    slot: int

    @property
    def has_nic(self) -> bool:
        return self.driver in E810_DRIVERS

    @property
    def mac(self) -> str:
        return f"02:e8:{'10' if self.has_nic else '20'}:00:00:{self.slot + 1:02x}"

    @property
    def ip(self) -> str:
        return f"10.99.0.{self.node + 1}"

    @property
    def ip6(self) -> str:
        return f"fd00:99::{self.node + 1:x}"

    @property
    def device_socket(self) -> str:
        return f"nic{self.slot}.sock" if self.has_nic else f"port{self.slot}.sock"

    @property
    def control_socket(self) -> str:
        return f"nic{self.slot}.ctl" if self.has_nic else f"port{self.slot}.ctl"


def seats(drivers) -> list:
    """Places for guests with these drivers; each kind is numbered on its own."""
    count = {True: 0, False: 0}
    found = []
    for node, driver in enumerate(drivers):
        kind = driver in E810_DRIVERS
        found.append(Seat(node, driver, count[kind]))
        count[kind] += 1
    return found


@dataclass
class Result:
    """How a guest ended."""

    node: int
    #: Exit status of the command; None when it did not come to its end.
    status: int = None
    #: Why the guest failed, one line each; empty when all is well.
    reasons: list = None
    log: Path = None
    #: Whether it got to no program at all, and the emulator is to blame.
    stillborn: bool = False

    @property
    def ok(self) -> bool:
        return not self.reasons


class Guest:
    """A virtual machine of a run. `start`, then wait for `finish`."""

    #: Channels that the lab serves and the guest's QEMU connects to.
    CHANNELS = ("lab", "out", "labsync")

    def __init__(self, seat: Seat, session):
        self.seat = seat
        self.node = seat.node
        self._session = session
        self.dir = session.run.path / f"guest{self.node}"
        self.log = session.logs / f"guest{self.node}.log"
        self._qemu_log = session.logs / f"guest{self.node}.qemu"
        self._servers = []
        self._status = None
        self._errors = []
        self._exited = asyncio.Event()
        self._out_open = False
        self._out_closed = asyncio.Event()
        self.stage = BOOTING
        #: Whether its command has been started.
        self.began = False
        self._stuck = False
        self.process = None

    # -- before the start ---------------------------------------------------

    def prepare(self, command, module_params: str) -> None:
        """Write what the guest finds in /run/lab."""
        (self.dir / "sync").mkdir(parents=True)
        seat, others = self.seat, [s for s in self._session.seats if s is not self.seat]
        config = {
            "NODE": self.node, "NODES": len(self._session.seats), "DRIVER": seat.driver,
            "IP": seat.ip, "IP6": seat.ip6, "PEERS": " ".join(s.ip for s in others),
            "PEERS6": " ".join(s.ip6 for s in others), "LAB_MAC": seat.mac,
            "LAB_MODULE_PARAMS": module_params, **self._session.guest_settings()}
        (self.dir / "config").write_text("".join(
            f"export {k}={shlex.quote(str(v))}\n" for k, v in config.items()))
        if command:
            (self.dir / "command").write_text("exec " + shlex.join(command) + "\n")
        packages = list(self._session.run.path.glob("ice*.pkg"))
        if seat.has_nic and packages:
            firmware = self.dir / "firmware/intel/ice/ddp"
            firmware.mkdir(parents=True)
            for package in packages:
                shutil.copy(package, firmware)
        if self._session.modules and (
                seat.driver == "irdma_rs" or self._session.options.modules):
            shutil.copytree(self._session.modules, self.dir / "modules")

    def command_line(self) -> list:
        """QEMU's arguments, without the program."""
        session, options = self._session, self._session.options
        parameters = list(KERNEL_PARAMETERS)
        if options.debug:
            parameters += DEBUG_PARAMETERS
        if options.leaks:
            parameters += LEAK_PARAMETERS
        if not session.interactive:
            # What it would say or do after a fault in itself is worth nothing, nor the wait.
            parameters.append("oops=panic")
        parameters += options.append.split()
        args = [
            "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
            "-accel", "tcg,thread=multi", "-cpu", "max,la57=off",
            "-smp", str(options.cpus), "-m", f"{options.mem_mib()}M",
            "-object", f"memory-backend-memfd,id=mem,size={options.mem_mib()}M,share=on",
            "-machine", "q35,memory-backend=mem",
            "-kernel", session.boot / "vmlinuz", "-initrd", session.boot / "initrd.cpio",
            "-append", " ".join(parameters),
            "-chardev", f"file,id=log,path={self.log}", "-serial", "chardev:log",
            "-device", "virtio-rng-pci", "-device", "virtio-serial-pci,max_ports=16"]
        for name, image in (("image", session.image), ("modules", session.boot
                                                       / "modules.erofs")):
            args += ["-drive", f"file={image},if=none,id={name},format=raw,readonly=on",
                     "-device", f"virtio-blk-pci,drive={name}"]
        for tag, folder, mode in (("tests", session.tests, ",readonly=on"),
                                  ("run", self.dir, ",readonly=on"),
                                  ("bin", session.programs, ",readonly=on"),
                                  ("share", session.share, "")):
            args += ["-fsdev", f"local,id={tag},path={folder},security_model=none,"
                               f"multidevs=remap{mode}",
                     "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        for name in self.CHANNELS:
            args += self._port(name, self._socket(name))
        if session.rack:
            args += self._port("nicctl", session.run.path / self.seat.control_socket)
            args += self._network(session.run.path / self.seat.device_socket)
        if session.interactive:
            args += ["-chardev", f"socket,id=console,path={self._socket('console')},"
                                 "server=off",
                     "-device", "virtconsole,chardev=console,name=console"]
        # For tools that look at QEMU itself, such as tests/bench.
        args += shlex.split(os.environ.get("IRDMA_RS_QEMU_ARGS", ""))
        return [os.fspath(a) for a in args]

    def _socket(self, name: str) -> Path:
        return self._session.run.path / f"guest{self.node}-{name}.sock"

    @staticmethod
    def _port(name: str, socket: Path) -> list:
        return ["-chardev", f"socket,id={name},path={socket},server=off",
                "-device", f"virtserialport,chardev={name},name={name}"]

    def _network(self, socket: Path) -> list:
        if self.seat.has_nic:
            device = {"driver": "vfio-user-pci", "bus": "nicport",
                      "socket": {"type": "unix", "path": os.fspath(socket)},
                      "x-msg-timeout": 600000}
            return ["-device", "pcie-root-port,id=nicport,chassis=1,slot=1",
                    "-device", json.dumps(device)]
        return ["-netdev", f"stream,id=net,server=off,addr.type=unix,addr.path={socket}",
                "-device", f"virtio-net-pci,netdev=net,mac={self.seat.mac},romfile="]

    # -- while it runs ------------------------------------------------------

    async def start(self) -> None:
        """Serve the channels and start QEMU."""
        handlers = {"lab": self._serve_lab, "out": self._serve_out,
                    "labsync": self._serve_sync}
        if self._session.interactive:
            handlers["console"] = self._session.console(self.node)
        for name, handler in handlers.items():
            self._servers.append(await asyncio.start_unix_server(
                handler, path=self._socket(name), limit=1 << 20))
        with open(self._qemu_log, "wb") as errors:
            self.process = await process.spawn(
                [*self._session.qemu, *self.command_line()], stdin=subprocess.DEVNULL,
                stdout=errors, stderr=errors, env=self._session.qemu_env())

    async def _serve_lab(self, reader, _writer) -> None:
        """Lines in which the guest says how far it is."""
        async for raw in reader:
            word, _, rest = raw.decode(errors="replace").strip().partition(" ")
            if word == "stage":
                self.stage = rest
                self.began |= rest == "running the command"
                self._session.note(f"guest {self.node}: {rest}")
            elif word == "error":
                self._errors.append(rest)
            elif word == "exit":
                self._status = int(rest) if rest.isdigit() else 255
                self._exited.set()
                self._session.barriers.leave(self.node)

    async def _serve_out(self, reader, _writer) -> None:
        """Output of the command."""
        self._out_open = True
        try:
            while True:
                try:
                    line = await reader.readuntil(b"\n")
                except asyncio.IncompleteReadError as error:
                    line = error.partial
                    if not line:
                        break
                except asyncio.LimitOverrunError as error:
                    line = await reader.readexactly(error.consumed)
                self._session.output(self.node, line)
        finally:
            self._out_closed.set()

    async def _serve_sync(self, reader, _writer) -> None:
        """Arrivals at meeting points: ticket and name."""
        async for raw in reader:
            ticket, _, name = raw.decode(errors="replace").strip().partition(" ")
            if ticket.isalnum() and name:
                self._session.barriers.arrive(self.node, name, ticket)

    def sync_answer(self, ticket: str, text: str) -> None:
        """Let the guest's `lab-sync` go on: it waits for this file."""
        target = self.dir / "sync" / ticket
        new = target.with_name(ticket + ".new")
        new.write_text(text + "\n")
        new.rename(target)

    # -- the end ------------------------------------------------------------

    async def finish(self) -> Result:
        """Wait for the end of the guest and judge it."""
        ended = asyncio.ensure_future(self.process.wait())
        exited = asyncio.ensure_future(self._exited.wait())
        reasons, limit = [], POWEROFF_TIMEOUT * self._session.options.slowness
        try:
            reasons += await self._boot({ended, exited})
            await asyncio.wait({ended, exited}, return_when=asyncio.FIRST_COMPLETED)
            # Death without a word may only have outrun the word.
            if not ended.done():
                try:
                    await asyncio.wait_for(asyncio.shield(ended), limit)
                except asyncio.TimeoutError:
                    reasons.append("did not power off within "
                                   f"{limit:.0f} s after its command")
            else:
                await asyncio.wait({exited}, timeout=1.0)
        finally:
            exited.cancel()
            if not ended.done():
                ended.cancel()
        # Whoever waits for it need not any more.
        self._session.barriers.leave(self.node)
        if self._out_open and ended.done():
            # What is under way comes before the verdict.
            await self._out_closed.wait()
        return self.judge(reasons)

    async def _boot(self, ends) -> list:
        """Wait until one of `ends` is there or the first program is; end what hangs.

        Returns what is to be said of it: of the kernels that the lab boots none hangs
        before its first program by itself.
        """
        limit = BOOT_TIMEOUT * self._session.options.slowness
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED, timeout=limit)
        if self.stage != BOOTING or any(end.done() for end in ends):
            return []
        self._stuck = True
        await process.stop(self.process)
        return [f"hung for {limit:.0f} s while: {self.stage}"]

    def judge(self, reasons: list) -> Result:
        """The result of a guest that has ended, or is given up for `reasons`."""
        reasons = list(reasons) + self._errors
        if self._status is None and not reasons:
            reasons.append(f"died while: {self.stage} (QEMU's status "
                           f"{self.process.returncode if self.process else None})")
            said = tail(self._qemu_log, 5)
            if said:
                reasons.append(f"QEMU: {said}")
        elif self._status and not self._errors:
            reasons.append(f"command ended with status {self._status}")
        bad = klog.scan_file(self.log, self._session.allowed)
        for finding in bad[:5]:
            reasons.append(f"kernel log, {finding}")
        if len(bad) > 5:
            reasons.append(f"kernel log, {len(bad) - 5} more such lines")
        stillborn = self.stage == BOOTING and (
            self._stuck or klog.died_of_emulator(self.log))
        return Result(self.node, self._status, reasons, self.log, stillborn)

    async def stop(self) -> None:
        """End it, however far it is."""
        await process.stop(self.process)
        for server in self._servers:
            server.close()
