# SPDX-License-Identifier: GPL-2.0
"""One run: rack and guests together, from the first process to the last."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from irdma_env.errors import EnvError
from irdma_env.guest import Boot
from irdma_env.paths import TREE

from . import rack as rack_module
from . import rundir
from .barrier import Barriers
from .guest import Guest, seats
from .options import Options

#: Exit statuses of the lab.
OK, FAILED, UNUSABLE, TIMED_OUT, INTERRUPTED = 0, 1, 2, 124, 130
#: Times that a run is begun again because the emulator did not get a guest's kernel up.
REPEATS = 2


class Session:
    """Everything that one run needs, and the run itself."""

    def __init__(self, options: Options, catalog, verbose: bool = False):
        self.options = options
        self.allowed = options.patterns()
        self.seats = seats(options.drivers())
        self.interactive = not options.command
        self.tests = TREE / "tests"
        self.rack = None
        self.guests = []
        self._catalog = catalog
        self._verbose = verbose
        self._start = time.monotonic()
        self._consoles = None
        self._repeats = 0
        self._ensure_parts()

    def _ensure_parts(self) -> None:
        """Make what is missing; raises EnvError when it cannot be made."""
        catalog, kernel = self._catalog, self.options.kernel
        if kernel == "stock":
            boot = catalog["boot"]
        elif kernel == "debug":
            boot = catalog["debug-boot"]
        else:
            folder = Path(kernel).resolve()
            if not (folder / "vmlinuz").is_file() or not (folder / "lib/modules").is_dir():
                raise EnvError(f"--kernel {kernel}: no directory with vmlinuz and "
                               "lib/modules/RELEASE in it")
            boot = Boot(catalog, folder)
        self.image = catalog["guest"].path() / "guest.erofs"
        self.programs = catalog["programs"].path()
        self.boot = boot.path()
        self.modules = None
        if self.options.modules or any(seat.driver == "irdma_rs" for seat in self.seats):
            made = {"stock": "modules", "debug": "debug-modules"}.get(kernel)
            if self.options.coverage:
                made = "coverage-modules"
            self.modules = (catalog[made].path() if made
                            else self._own_modules(Path(kernel)))
        self._rack_program = rack_module.command(catalog)
        self.qemu = catalog["root"].host_command("usr/bin/qemu-system-x86_64")
        data = catalog["root"].path() / "usr/share"
        for folder in ("qemu", "seabios"):
            self.qemu += ["-L", os.fspath(data / folder)]

    def _own_modules(self, kernel: Path):
        """Modules built for a kernel that is not the stock one; None if none are needed."""
        if not list((kernel / "irdma_rs").glob("*.ko")):
            if all(seat.driver != "irdma_rs" for seat in self.seats):
                return None
            raise EnvError(f"--kernel {kernel}: no modules built for it in "
                           f"{kernel}/irdma_rs, which --driver irdma_rs needs")
        return kernel / "irdma_rs"

    def qemu_env(self) -> dict:
        """QEMU must not load the host's QEMU's modules."""
        library = self._catalog["root"].path() / "usr/lib/x86_64-linux-gnu/qemu"
        return dict(os.environ, QEMU_MODULE_DIR=os.fspath(library))

    def guest_settings(self) -> dict:
        """More lines for the guests' configuration."""
        settings = {"LAB_INTERACTIVE": int(self.interactive),
                    "LAB_COVERAGE": int(self.options.coverage),
                    "LAB_SLOWNESS": self.options.slowness,
                    "KERNEL": "debug" if self.options.debug else "stock"}
        if self.interactive and sys.stdin.isatty():
            size = os.get_terminal_size(sys.stdin.fileno())
            settings.update(LAB_ROWS=size.lines, LAB_COLUMNS=size.columns,
                            LAB_TERM=os.environ.get("TERM", "vt100"))
        return settings

    # -- called by guests ---------------------------------------------------

    def note(self, text: str) -> None:
        """Progress, for the curious."""
        if self._verbose:
            self.say(text)

    def say(self, text: str) -> None:
        elapsed = time.monotonic() - self._start
        end = "\r\n" if self._consoles and self._consoles.raw else "\n"
        sys.stderr.write(f"lab: {elapsed:5.1f} s  {text}{end}")
        sys.stderr.flush()

    def output(self, node: int, line: bytes) -> None:
        """One line of a guest's command."""
        if not line.endswith(b"\n"):
            line += b"\n"
        try:
            sys.stdout.buffer.write(f"[{node}] ".encode() + line)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            # Nobody reads any more: as good as Ctrl-C.
            os.kill(os.getpid(), signal.SIGINT)

    def console(self, node: int):
        return self._consoles.handler(node)

    # -- the run ------------------------------------------------------------

    def execute(self) -> int:
        """Run it; returns the exit status. Nothing is left when this returns."""
        self._repeats = REPEATS
        while (status := self._once()) is None:
            self._repeats -= 1
        return status

    def _once(self):
        """One run; the exit status, or None if it is to be done again."""
        about = {"driver": self.options.driver, "guests": self.options.guests,
                 "command": self.options.command}
        self._start = time.monotonic()
        self.logs = rundir.log_dir(self._catalog.cache)
        self.run = rundir.RunDir(dict(about, logs=os.fspath(self.logs)))
        try:
            return asyncio.run(self._main())
        finally:
            self.run.remove()

    async def _main(self):
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, task.cancel)
        try:
            async with asyncio.timeout(None if self.interactive
                                       else self.options.timeout):
                return await self._run()
        except TimeoutError:
            for guest in self.guests:
                result = guest.judge([f"not finished after {self.options.timeout:.0f} s, "
                                      f"still: {guest.stage}"])
                self._report(result)
            for name, nodes in self.barriers.waiting().items():
                self.say(f"lab-sync {name}: guests {nodes} wait there")
            return TIMED_OUT
        except asyncio.CancelledError:
            if self._consoles and self._consoles.quit:
                return OK
            self.say(f"interrupted; logs: {self.logs}")
            return INTERRUPTED
        finally:
            await asyncio.gather(*(guest.stop() for guest in self.guests))
            if self.rack:
                await self.rack.stop()
            if self._consoles:
                self._consoles.close()

    async def _run(self):
        options = self.options
        self.share = options.share.resolve() if options.share else self.run.path / "share"
        self.share.mkdir(exist_ok=True)
        self.barriers = Barriers(len(self.seats), lambda node, ticket, text:
                                 self.guests[node].sync_answer(ticket, text))
        if self.interactive:
            from .console import Consoles
            self._consoles = Consoles(len(self.seats), self.say)
        self.rack = rack_module.Rack(self._rack_program, self.run.path, self.logs)
        nics = sum(seat.has_nic for seat in self.seats)
        await self.rack.start(nics, len(self.seats) - nics, options.pcap,
                              options.card, options.snoop, options.switches)
        self.guests = [Guest(seat, self) for seat in self.seats]
        for guest in self.guests:
            guest.prepare(options.command, options.module_params)
        for guest in self.guests:
            await guest.start()
        if self._verbose:
            self.note("guests started")
        elif sys.stderr.isatty():
            self.say("guests started, the command runs when they are up (-v says how far)")
        rack_end = asyncio.ensure_future(self.rack.ended())
        finishes = [asyncio.ensure_future(guest.finish()) for guest in self.guests]
        if self._consoles:
            self._consoles.open()
        try:
            pending = {rack_end, *finishes}
            ok = True
            while pending & set(finishes):
                done, pending = await asyncio.wait(
                    pending, return_when=asyncio.FIRST_COMPLETED)
                results = [task.result() for task in done - {rack_end}]
                if any(map(self._is_repeated, results)):
                    return None
                for result in results:
                    ok &= self._report(result)
                if rack_end in done and pending:
                    self.say(rack_end.result())
                    return FAILED
            return OK if ok else FAILED
        finally:
            rack_end.cancel()
            for task in finishes:
                task.cancel()

    def _is_repeated(self, result) -> bool:
        """Whether to begin again after this end of a guest; no command has been started then."""
        if (not result.stillborn or not self._repeats or self.interactive
                or any(guest.began for guest in self.guests)):
            return False
        self.say(f"guest {result.node}: its kernel did not get up in the emulator, "
                 f"starting all again: {result.reasons[0]} (kernel log: {result.log})")
        return True

    def _report(self, result) -> bool:
        if result.ok:
            self.note(f"guest {result.node}: ended well, kernel log clean")
            return True
        for reason in result.reasons:
            self.say(f"guest {result.node}: FAILED: {reason}")
        self.say(f"guest {result.node}: kernel log: {result.log}")
        return False
