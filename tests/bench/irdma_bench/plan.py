# SPDX-License-Identifier: GPL-2.0
"""What is measured, and how much of it."""

from dataclasses import asdict, dataclass

#: The two that are compared: ours, and the one it takes the place of.
DRIVERS = ("irdma_rs", "irdma")
#: Modules that are a driver: what they execute is the driver's part of the cost.
MODULES = {"irdma_rs": ("irdma_rs", "rdma_rs"), "irdma": ("irdma",)}
#: Numbers of groups at which operations are measured.
LEVELS = (1, 64, 512, 4095)
#: Numbers of threads whose rates are measured.
THREADS = (1, 4, 16)
#: Steps on many groups, each with its name and what `bench-steps` is told.
STEPS = (
    ("attach, first member", "attach 0 0"),
    ("attach, second member", "attach 1 0"),
    ("attach, member again", "attach 0 1"),
    ("detach, one use of two", "detach 0 1"),
    ("detach, one member of two", "detach 1 0"),
    ("detach, last member", "detach 0 0"),
)
#: Groups of a step whose operations are counted, and of one whose memory is.
STEP_GROUPS, MEMORY_GROUPS = 32, 512


#: Starts a line in a guest's kernel log that says whose the next lines are.
MARK = "bench:"


#: What there is a profile of, in order: attach and detach at each level, then threads.
PROFILES = ([f"{level}-groups" for level in LEVELS]
            + [f"{threads}-threads" for threads in THREADS])


def profile_number(number: int, driver: str, place: int) -> int:
    """The number of a profile: of round `number`, of PROFILES[place]."""
    return (number - 1) * 100 + DRIVERS.index(driver) * 10 + place


@dataclass
class Plan:
    """How much is measured; `asdict` of it goes to the guest and into the results."""

    #: Loads of each driver while instructions are counted, and while time is.
    count_rounds: int = 2
    time_rounds: int = 5
    #: How often an operation is measured per load and level.
    repeat: int = 25
    #: How long threads attach and detach, per load and number of threads.
    milliseconds: int = 1000
    #: Pairs of changing groups at the end.
    churn: int = 20000

    def for_guest(self) -> dict:
        return asdict(self)


QUICK = Plan(count_rounds=1, time_rounds=2, repeat=10, milliseconds=500, churn=5000)
DEFAULT = Plan()
FULL = Plan(count_rounds=3, time_rounds=9, repeat=50, milliseconds=2000, churn=1_000_000)
