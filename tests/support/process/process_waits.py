"""Waits for what a worker does not tell: that it is gone, that it has paused."""

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from support.process.worker_process import SECONDS, WorkerProcess

GONE_SECONDS = 2.0 + 8.0
"""The 2 s in which a worker must be gone, and what a slow machine may add; what holds it up here lasts far longer."""


def watch(pid: int) -> Any:
    """Something that `select` finds readable once the process, which need be no child, is gone."""
    if sys.platform == "linux":
        return os.pidfd_open(pid)
    queue = select.kqueue()
    queue.control([select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)], 0)
    return queue


def wait_gone(watched: Any) -> None:
    """Waits for a watched process to end, for as long as the protocol allows."""
    gone, _, _ = select.select([watched], [], [], GONE_SECONDS)
    assert gone, "the worker is still there"


def wait_for_pause(worker: WorkerProcess) -> None:
    """Waits until the worker has nothing to do any more."""
    wait_until_still(worker.process.pid)


def wait_until_still(pid: int) -> None:
    """Waits until a process waits."""
    deadline = time.monotonic() + SECONDS
    while not stands_still(pid):
        assert time.monotonic() < deadline, "the worker never paused"


def stands_still(pid: int) -> bool:
    """Whether a process waits: its processor time does not grow, and not because a busy machine gives it none."""
    before = _processor_time(pid)
    time.sleep(0.3)  # the span over which it is observed
    return _processor_time(pid) == before and not _runnable(pid)


def _processor_time(pid: int) -> str:
    """The processor time that a process has used, to a hundredth of a second."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.exists():
        return str(_fields(stat)[11:13])
    return subprocess.run(["ps", "-o", "time=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout


def _runnable(pid: int) -> bool:
    """Whether a thread would run if a busy machine let it, or waits for its disk."""
    return any(_fields(task / "stat")[0] in (b"R", b"D") for task in Path(f"/proc/{pid}/task").glob("*"))


def _fields(stat: Path) -> list[bytes]:
    return stat.read_bytes().rpartition(b")")[2].split()
