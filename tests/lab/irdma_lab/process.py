# SPDX-License-Identifier: GPL-2.0
"""Child processes that never outlive the lab."""

import asyncio
import ctypes
import os
import signal
import sys

#: prctl(2): signal that a process gets when its parent dies.
PR_SET_PDEATHSIG = 1
#: Seconds a process has to end after SIGTERM.
GRACE = 5.0

_libc = ctypes.CDLL(None, use_errno=True)


def _tie_to(parent: int):
    """Runs in the child between fork and exec."""
    def tie():
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    return tie


async def spawn(args, **options) -> asyncio.subprocess.Process:
    """Start a program in a session of its own, so that Ctrl-C is ours alone.

    Only from the main thread: the kernel ties the child to the thread.
    """
    return await asyncio.create_subprocess_exec(
        *[os.fspath(a) for a in args], start_new_session=True,
        preexec_fn=_tie_to(os.getpid()), **options)


async def stop(process) -> None:
    """End a process: SIGTERM, after a while SIGKILL; returns when it is gone."""
    if process is None or process.returncode is not None:
        return
    try:
        process.terminate()
        await asyncio.wait_for(process.wait(), GRACE)
    except asyncio.TimeoutError:
        print(f"lab: process {process.pid} did not end in {GRACE:.0f} s, killing it",
              file=sys.stderr)
        process.kill()
        await process.wait()
    except ProcessLookupError:
        await process.wait()
