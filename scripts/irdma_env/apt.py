# SPDX-License-Identifier: GPL-2.0
"""What the host's apt configuration says: mirror, keyring, proxies; host packages."""

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import EnvError
from .progress import say

#: The release that build root and guests are made of.
RELEASE = "trixie"
BACKPORTS = RELEASE + "-backports"
#: Suites whose mirror also has RELEASE.
DEBIAN_SUITES = ("bookworm", "trixie", "forky", "sid", "oldstable", "stable",
                 "testing", "unstable")
#: What the host must have: command, package.
HOST_TOOLS = (("mmdebstrap", "mmdebstrap"), ("unshare", "util-linux"),
              ("setpriv", "util-linux"),
              ("mount", "mount"), ("chroot", "coreutils"), ("find", "findutils"))


@dataclass(frozen=True)
class Mirror:
    """Where Debian packages come from."""

    uri: str
    keyring: str = ""

    def sources(self) -> str:
        """Lines for sources.list: the release, its updates, its backports."""
        option = f"[signed-by={self.keyring}] " if self.keyring else ""
        return "".join(f"deb {option}{self.uri} {suite} main\n" for suite in
                       (RELEASE, RELEASE + "-updates", BACKPORTS))


def stanzas(text: str):
    """Fields of each stanza of a deb822 file, continuation lines joined."""
    fields, last = {}, None
    for line in text.splitlines() + [""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if fields:
                yield fields
            fields, last = {}, None
        elif line[0].isspace() and last:
            fields[last] += "\n" + line.strip()
        elif ":" in line:
            last, value = line.split(":", 1)
            last = last.strip().lower()
            fields[last] = value.strip()


def _wanted(suites, components) -> bool:
    return "main" in components and any(s in DEBIAN_SUITES for s in suites)


def from_deb822(text: str):
    """The first Debian mirror of a `.sources` file, or None."""
    for field in stanzas(text):
        if field.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        if "deb" not in field.get("types", "").split():
            continue
        uris = field.get("uris", "").split()
        if uris and _wanted(field.get("suites", "").split(),
                            field.get("components", "").split()):
            keyring = field.get("signed-by", "")
            # A key written out in the file itself has no path to hand on.
            return Mirror(uris[0], keyring if keyring.startswith("/") else "")
    return None


def from_one_line(text: str):
    """The first Debian mirror of a `sources.list` file, or None."""
    pattern = re.compile(r"^deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+(.+)$")
    for line in text.splitlines():
        match = pattern.match(line.split("#", 1)[0].strip())
        if not match:
            continue
        options, uri, suite, components = match.groups()
        if not _wanted([suite], components.split()):
            continue
        signed = re.search(r"signed-by=(/[^\s,]+)", options or "")
        return Mirror(uri, signed.group(1) if signed else "")
    return None


def find_mirror(etc: Path = Path("/etc/apt")) -> Mirror:
    """The mirror the host itself uses.

    Raises EnvError when the host's apt configuration names no Debian mirror.
    """
    files = [etc / "sources.list"] if (etc / "sources.list").is_file() else []
    folder = etc / "sources.list.d"
    if folder.is_dir():
        files += sorted(folder.iterdir())
    for file in files:
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError):
            continue
        found = None
        if file.suffix == ".sources":
            found = from_deb822(text)
        elif file.suffix == ".list":
            found = from_one_line(text)
        if found:
            return found
    raise EnvError(f"no Debian mirror found in {etc}/sources.list or "
                   f"{etc}/sources.list.d: the build root is made of Debian packages; "
                   "run this on Debian 12 or 13")


def proxy_options() -> list:
    """The host's proxy settings as apt options (`Key "value";`)."""
    if not shutil.which("apt-config"):
        return []
    dump = subprocess.run(["apt-config", "dump", "--format", '%f "%v";%n', "Acquire"],
                          capture_output=True, text=True, check=False)
    return [line for line in dump.stdout.splitlines()
            if re.match(r"Acquire::https?::(\S+::)?[Pp]roxy\b", line)
            and not line.endswith('"";')]


def require_host_tools() -> None:
    """Install what the host lacks, or say what to install.

    Raises EnvError with the command to run when it cannot be done from here.
    """
    missing = sorted({package for tool, package in HOST_TOOLS
                      if not shutil.which(tool, path=os.environ.get("PATH", "")
                                          + ":/usr/sbin:/sbin")})
    if not missing:
        return
    packages = missing + ["debian-archive-keyring"]
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    if os.geteuid() != 0:
        raise EnvError(f"missing on this machine: {', '.join(missing)}\n"
                       f"run as root: apt-get update && {shlex.join(command)}")
    say(f"[env] installing on this machine: {' '.join(packages)}")
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for args in (["apt-get", "update"], command):
        try:
            done = subprocess.run(args, env=env, capture_output=True, text=True,
                                  check=False)
        except FileNotFoundError:
            raise EnvError("no apt-get on this machine; install by its own means: "
                           + " ".join(missing)) from None
        if done.returncode:
            raise EnvError(f"`{shlex.join(args)}` failed:\n{done.stdout[-2000:]}"
                           f"{done.stderr[-2000:]}")


def require_root(what: str) -> None:
    """Building in the build root mounts things, which only root may."""
    if os.geteuid() != 0:
        raise EnvError(f"{what} has to be made by root; run: sudo "
                       f"IRDMA_RS_CACHE=... scripts/env  (with the cache you use)")
