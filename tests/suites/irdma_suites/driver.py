# SPDX-License-Identifier: GPL-2.0
"""Loading, unloading and losing the driver, for suites that do so."""

import re
from pathlib import Path


def load(g) -> bool:
    """Load the driver; true once the device can be used."""
    return (g.run("lab-driver", "load", timeout=90).returncode == 0
            and g.wait(g.device_ready, 60))


def unload(g) -> bool:
    return g.run("lab-driver", "unload", timeout=90).returncode == 0


def usable(g, seconds: float = 60.0) -> bool:
    """Wait for the device, and give it the addresses that a reset may have taken."""
    g.run("ip", "link", "set", g.netdev, "up")
    g.run("ip", "addr", "add", f"{g.ip}/24", "dev", g.netdev)
    g.run("ip", "addr", "add", f"{g.ip6}/64", "dev", g.netdev, "nodad")
    return g.wait(g.device_ready, seconds)


def bringups(g) -> int:
    """How often a driver has brought the RDMA half up."""
    return g.nic("ops")["cqp"].get("CREATE_AEQ", 0)


class Binding:
    """The auxiliary device of our function, to be unbound and bound."""

    def __init__(self):
        self.device = next(Path("/sys/bus/auxiliary/devices").glob("ice.roce.*"))
        self.driver = (self.device / "driver").resolve()

    def unbind(self) -> None:
        (self.driver / "unbind").write_text(self.device.name)

    def bind(self) -> None:
        (self.driver / "bind").write_text(self.device.name)


def violations(g, clear: bool = False) -> list:
    """What the driver broke of the device's rules; with `clear` they are forgotten then.

    That a queue pair goes which the device refused to take out of a group is the device's
    own fault.
    """
    return [text for text in g.nic("check", clear=clear)["violations"]
            if not re.fullmatch(r"QP \d+ destroyed while a member of group \d+", text)]


def warnings() -> list:
    """Lines of the kernel log that say WARNING or BUG."""
    import subprocess
    said = subprocess.run(["dmesg"], capture_output=True, text=True, check=False,
                          errors="replace").stdout
    return [line for line in said.splitlines() if "WARNING:" in line or "BUG:" in line]
