# SPDX-License-Identifier: GPL-2.0
"""The description of a suite, and where suites are found."""

import importlib.util
import re
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent


def _is_stock(driver: str) -> bool:
    """Whether the guest in the lead has stock irdma."""
    return driver.split(",")[0] == "irdma"


@dataclass(frozen=True)
class Suite:
    """What a suite shows and what it needs."""

    #: One line for people.
    about: str
    #: How many guests.
    guests: int = 2
    #: Drivers to run on, each as `scripts/lab --driver` takes it.
    drivers: tuple = ("irdma_rs", "irdma")
    #: More drivers, to run on only when they are asked for by `--driver`: what they do is worth
    #: knowing, and not the time that `make test` would take for it.
    on_request: tuple = ()
    #: Kernels to run on: "stock", and "debug" for irdma_rs with KASAN, lockdep, kmemleak and
    #: the other detectors (`scripts/lab --kernel debug --leaks`). Stock irdma is not run on
    #: the debug kernel, and `judge` compares runs on the stock kernel only.
    kernels: tuple = ("stock",)
    #: Whether `make test` has the run on the debug kernel, too. The others are for
    #: `make test-debug`: all of them take longer than `make test` may.
    debug_each_time: bool = False
    #: Whether it needs guests of its own, since it leaves them in no state for others.
    alone: bool = False
    #: The same, on stock irdma only.
    stock_alone: bool = False
    #: Seconds that its part of a run may take; on the debug kernel, four times that.
    timeout: int = 240
    #: Defects of stock irdma that make tests fail: pattern of test names -> reason.
    stock_defects: dict = field(default_factory=dict)
    #: The same of stock rdma_rxe.
    rxe_defects: dict = field(default_factory=dict)
    #: Kernel log lines that belong to what is tested.
    allow_warn: tuple = ()
    #: The same, on stock irdma only: where a defect of it shows in the log, too.
    stock_allow_warn: tuple = ()
    #: A defect of stock irdma that may bring its guests' kernel down while the suite runs: what
    #: is then missing is no failure. Only for a suite that is alone on stock.
    stock_crash: str = ""
    #: Module parameters for the driver.
    module_params: str = ""
    #: What the virtual cards offer, as `scripts/lab --card` takes it.
    card: str = ""
    #: How switches snoop, as `scripts/lab --snoop` takes it. Most suites are about a driver's
    #: attach, with nobody joined to the IP group: there they do not.
    snoop: str = "off"
    #: What is at which of several linked switches, as `scripts/lab --switches` takes it.
    switches: str = ""
    #: Kernel parameters.
    append: str = ""
    #: Whether it loads modules of the project (`lab-driver insert`) whatever the driver.
    modules: bool = False
    #: Whether the debug kernel looks for leaked memory at the end.
    leaks: bool = True

    def __post_init__(self):
        if self.stock_crash and not self.is_alone("irdma"):
            raise ValueError(f"suite ({self.about}): stock_crash would excuse other suites' failures")

    @property
    def setting(self) -> tuple:
        """What suites in one boot have to agree on."""
        return (self.guests, self.module_params, self.card, self.snoop, self.switches,
                self.append, self.leaks)

    def allowed(self, driver: str) -> tuple:
        """Patterns of kernel log lines that are no failure on this driver."""
        return self.allow_warn + (self.stock_allow_warn if _is_stock(driver) else ())

    def crash(self, driver: str):
        """Why guests with this driver may die of a fault in their kernel, or None."""
        return self.stock_crash if self.stock_crash and _is_stock(driver) else None

    def is_alone(self, driver: str) -> bool:
        """Whether it needs guests of its own on this driver."""
        return self.alone or (self.stock_alone and _is_stock(driver))

    def defect(self, driver: str, name: str):
        """Why this test is known to fail on this driver, or None."""
        known = {"irdma": self.stock_defects, "rxe": self.rxe_defects}
        for pattern, reason in known.get(driver.split(",")[0], {}).items():
            if re.search(pattern, name):
                return reason
        return None


def names() -> list:
    """All suites there are."""
    return sorted(p.stem for p in HERE.glob("*.py"))


def module(name: str):
    """The module of a suite."""
    spec = importlib.util.spec_from_file_location(f"suite_{name}", HERE / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
