# SPDX-License-Identifier: GPL-2.0
"""The rack: the process with the virtual E810s and the fabric."""

import asyncio
import os
import subprocess
from pathlib import Path

from irdma_env.errors import EnvError
from irdma_env.progress import tail

from . import process

#: Seconds the rack has to create its sockets.
START_TIMEOUT = 30.0


def command(catalog) -> list:
    """Command line of the rack program.

    $IRDMA_RS_RACK names one built by hand, in place of the cached one.
    """
    override = os.environ.get("IRDMA_RS_RACK")
    if override:
        return [override]
    nic = catalog["nic"].path()
    if (nic / "runs-on").read_text().strip() == "host":
        return [os.fspath(nic / "rack")]
    return catalog["root"].host_command(nic / "rack")


class Rack:
    """The running rack of one lab run."""

    def __init__(self, program: list, folder: Path, logs: Path):
        self.folder = folder
        self.log = logs / "rack.log"
        self._errors = logs / "rack.stderr"
        self._program = program
        self.process = None

    async def start(self, nics: int, ports: int, pcap=None, card: str = "",
                    snoop: str = "", switches: str = "") -> None:
        """Start it and wait until all its sockets listen.

        Raises EnvError with the end of its log when it does not come up.
        """
        args = [*self._program, "--dir", self.folder, "--nics", str(nics),
                "--ports", str(ports), "--log", self.log]
        if card:
            args += ["--card", card]
        if snoop:
            args += ["--snoop", snoop]
        if switches:
            args += ["--switches", switches]
        if pcap:
            args += ["--pcap", pcap]
        with open(self._errors, "wb") as errors:
            self.process = await process.spawn(args, stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, stderr=errors)
        try:
            async with asyncio.timeout(START_TIMEOUT):
                while line := await self.process.stdout.readline():
                    if line.strip() == b"ready":
                        return
        except TimeoutError:
            raise EnvError(f"rack: not ready after {START_TIMEOUT:.0f} s\n"
                           + self.explain()) from None
        await self.process.wait()
        raise EnvError(f"rack: ended at start with status {self.process.returncode}\n"
                       + self.explain())

    def explain(self) -> str:
        """End of its messages and where they are."""
        return f"{tail(self._errors)}\n--- logs: {self._errors} {self.log}"

    async def ended(self) -> str:
        """Returns, with an explanation, if it ends on its own."""
        status = await self.process.wait()
        return f"rack: ended with status {status}\n{self.explain()}"

    async def stop(self) -> None:
        await process.stop(self.process)
