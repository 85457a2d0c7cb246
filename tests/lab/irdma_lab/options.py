# SPDX-License-Identifier: GPL-2.0
"""What a run is to be, checked."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from irdma_env.errors import EnvError

#: Drivers that need a virtual E810.
E810_DRIVERS = ("irdma_rs", "irdma")
#: Drivers on an ordinary virtio network interface.
VIRTIO_DRIVERS = ("rxe", "none")
DRIVERS = E810_DRIVERS + VIRTIO_DRIVERS
MAX_GUESTS = 16
MAX_CPUS = 16
#: How many times as long all takes on a kernel with its detectors on.
DEBUG_SLOWNESS = 4
_MEMORY = re.compile(r"^([1-9]\d*)([MG])$")


@dataclass
class Options:
    """Options of `lab run` and `lab shell`."""

    command: list
    driver: str = "irdma_rs"
    guests: int = 1
    cpus: int = 2
    #: None: what the kernel needs.
    mem: str = None
    kernel: str = "stock"
    share: Path = None
    pcap: Path = None
    #: Seconds; None: what the kernel needs.
    timeout: float = None
    module_params: str = ""
    card: str = ""
    snoop: str = ""
    switches: str = ""
    allow_warn: list = field(default_factory=list)
    append: str = ""
    #: Whether kmemleak looks for leaks after the command.
    leaks: bool = False
    #: Whether guests get the project's modules whatever their driver is.
    modules: bool = False
    #: Whether the modules count what runs, and the counts are kept in the shared directory.
    coverage: bool = False

    def __post_init__(self):
        if self.mem is None:
            self.mem = "2G" if self.debug else "1G"
        if self.timeout is None:
            self.timeout = 600.0 * self.slowness

    @property
    def debug(self) -> bool:
        """Whether the debug kernel is to run."""
        return self.kernel == "debug"

    @property
    def slowness(self) -> int:
        """Factor for whatever limit of time is meant for the stock kernel."""
        return DEBUG_SLOWNESS if self.debug else 1

    def check(self) -> None:
        """Raises EnvError, naming the option, for what cannot work."""
        if not 1 <= self.guests <= MAX_GUESTS:
            raise EnvError(f"--guests {self.guests}: 1 to {MAX_GUESTS} are possible")
        drivers = self.drivers()
        if self.debug and "irdma" in drivers:
            raise EnvError("--kernel debug --driver irdma: the debug kernel is for our own "
                           "modules, and stock irdma is not run on it")
        if self.leaks and self.kernel == "stock":
            raise EnvError("--leaks: only a kernel with kmemleak can tell; add "
                           "--kernel debug")
        if self.coverage and not self.debug:
            raise EnvError("--coverage: the modules with counters are built for the debug "
                           "kernel; add --kernel debug")
        if self.cpus < 2 and set(drivers) & set(E810_DRIVERS):
            raise EnvError(f"--cpus {self.cpus}: at least 2 with a virtual E810: with one, "
                           "the emulator's atomic operations lose updates to memory that "
                           "the device shares")
        if not 1 <= self.cpus <= MAX_CPUS:
            raise EnvError(f"--cpus {self.cpus}: 1 to {MAX_CPUS} are possible")
        match = _MEMORY.match(self.mem)
        if not match or self.mem_mib() < 256:
            raise EnvError(f"--mem {self.mem}: a size like 1G or 1536M, at least 256M")
        if self.timeout <= 0:
            raise EnvError(f"--timeout {self.timeout}: has to be positive")
        for name, folder in (("--share", self.share), ("--pcap", self.pcap)):
            if folder is not None and not folder.is_dir():
                raise EnvError(f"{name} {folder}: no such directory")
        self.patterns()

    def mem_mib(self) -> int:
        number, unit = _MEMORY.match(self.mem).groups()
        return int(number) * (1024 if unit == "G" else 1)

    def drivers(self) -> list:
        """The driver of each guest: one name for all, or one for each."""
        names = self.driver.split(",")
        for name in names:
            if name not in DRIVERS:
                raise EnvError(f"--driver {name}: one of {', '.join(DRIVERS)}")
        if len(names) == 1:
            return names * self.guests
        if len(names) != self.guests:
            raise EnvError(f"--driver {self.driver}: {len(names)} drivers for "
                           f"{self.guests} guests")
        return names

    def patterns(self) -> list:
        """Compiled --allow-warn."""
        compiled = []
        for text in self.allow_warn:
            try:
                compiled.append(re.compile(text))
            except re.error as error:
                raise EnvError(f"--allow-warn {text}: {error}") from None
        return compiled
