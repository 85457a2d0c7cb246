# SPDX-License-Identifier: GPL-2.0
"""Kernel configurations: what fragments ask for, and whether it came true.

Kconfig drops silently what a dependency forbids, and a later fragment overrides
an earlier one. A kernel without the detector that its tests rely on would pass
them all, so every option is compared.
"""

import re

_LINE = re.compile(r"^(?:CONFIG_(\w+)=(.*)|# CONFIG_(\w+) is not set)$")


def read(text: str) -> dict:
    """Option -> value as in a .config; an option that is off has the value "n"."""
    found = {}
    for line in text.splitlines():
        match = _LINE.match(line.strip())
        if match:
            name, value, off = match.groups()
            found[off or name] = "n" if off else value
    return found


def unmet(asked: dict, config: dict) -> list:
    """What is not as asked, one line for each option."""
    return [f"CONFIG_{name}: asked for {value}, is {config.get(name, 'n')}"
            for name, value in asked.items() if config.get(name, "n") != value]
