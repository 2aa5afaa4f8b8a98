"""Wait for states that a worker does not report: it has exited, or it is idle."""

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from support.process.worker_process import SECONDS, WorkerProcess

GONE_SECONDS = 2.0 + 8.0
"""Time for a worker to exit: 2 s, and 8 s for a slow machine. The delays that tests cause last far longer."""


def watch(pid: int) -> Any:
    """Return an object that `select` finds readable once a process has exited; it need not be a child."""
    if sys.platform == "linux":
        return os.pidfd_open(pid)
    queue = select.kqueue()
    queue.control([select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)], 0)
    return queue


def wait_gone(watched: Any) -> None:
    """Wait for a watched process to exit, as long as `GONE_SECONDS` allows."""
    gone, _, _ = select.select([watched], [], [], GONE_SECONDS)
    assert gone, "the worker is still there"


def wait_for_pause(worker: WorkerProcess) -> None:
    """Wait until a worker has nothing left to do."""
    wait_until_still(worker.process.pid)


def wait_until_still(pid: int) -> None:
    """Wait until a process stands still."""
    deadline = time.monotonic() + SECONDS
    while not stands_still(pid):
        assert time.monotonic() < deadline, "the worker never paused"


def stands_still(pid: int) -> bool:
    """Return whether a process waits: it uses no processor time, and would not if the machine were free."""
    before = _processor_time(pid)
    time.sleep(0.3)  # the span over which it is observed
    return _processor_time(pid) == before and not _runnable(pid)


def _processor_time(pid: int) -> str:
    """Return the processor time that a process has used, to a hundredth of a second."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.exists():
        return str(_fields(stat)[11:13])
    return subprocess.run(["ps", "-o", "time=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout


def _runnable(pid: int) -> bool:
    """Return whether any thread of a process is ready to run, or waits for the disk."""
    return any(_fields(task / "stat")[0] in (b"R", b"D") for task in Path(f"/proc/{pid}/task").glob("*"))


def _fields(stat: Path) -> list[bytes]:
    return stat.read_bytes().rpartition(b")")[2].split()
