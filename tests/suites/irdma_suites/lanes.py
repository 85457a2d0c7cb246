# SPDX-License-Identifier: GPL-2.0
"""Runs jobs side by side, and the programs that they start.

Guests wait much of their time, so two boots at once take little longer than
one. A job is a function without arguments; jobs start in order.
"""

import os
import subprocess
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

_running = set()
_lock = threading.Lock()
_stopping = False


def lines(command, kept, **options):
    """Lines of a program's output, also written to `kept`, and then its status, an int."""
    with _lock:
        if _stopping:
            raise RuntimeError(f"{command[0]}: not started, the run is ending")
        process = subprocess.Popen(
            [os.fspath(c) for c in command], stdout=subprocess.PIPE, text=True,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, errors="replace", **options)
        _running.add(process)
    try:
        for line in process.stdout:
            kept.write(line)
            kept.flush()
            yield line.rstrip("\n")
        yield process.wait()
    finally:
        with _lock:
            _running.discard(process)
        if process.poll() is None:
            process.terminate()
            process.wait()
        process.stdout.close()


def _stop(now: bool) -> None:
    """Let no program start from now on, and end those that run; or allow it again."""
    global _stopping
    with _lock:
        _stopping = now
        for process in _running if now else ():
            process.terminate()


def run(jobs, lanes: int) -> None:
    """Run all jobs, at most `lanes` at a time. What the first raises is raised."""
    pool = ThreadPoolExecutor(lanes)
    try:
        futures = [pool.submit(job) for job in jobs]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
    finally:
        # Nothing runs here any more unless a job failed or the user had enough.
        pool.shutdown(wait=False, cancel_futures=True)
        _stop(True)
        pool.shutdown(wait=True)
        _stop(False)
