"""Wait for states that a worker does not report: it has exited, it is idle, or it has children."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from support.process.worker_process import SECONDS, WorkerProcess

GONE_SECONDS = 2.0 + 18.0
"""Time for a worker to exit: 2 s, and 18 s for a slow machine. The delays that tests cause last far longer."""


def watch(pid: int) -> Any:
    """Return an object that `select` finds readable once a process has exited; it need not be a child."""
    if sys.platform == "linux":
        return os.pidfd_open(pid)
    kqueues: Any = select  # for a checker that takes this for Linux
    queue = kqueues.kqueue()
    queue.control([kqueues.kevent(pid, kqueues.KQ_FILTER_PROC, kqueues.KQ_EV_ADD, kqueues.KQ_NOTE_EXIT)], 0)
    return queue


def wait_gone(watched: Any) -> None:
    """Wait for a watched process to exit, as long as `GONE_SECONDS` allows."""
    gone, _, _ = select.select([watched], [], [], GONE_SECONDS)
    assert gone, "the worker is still there"


def is_there(pid: int) -> bool:
    """Return whether a process exists. One that has exited does, until its parent has waited for it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_pause(worker: WorkerProcess) -> None:
    """Wait until a worker has nothing left to do."""
    wait_until_still(worker.process.pid)


def wait_until_still(pid: int) -> None:
    """Wait until a process stands still."""
    deadline = time.monotonic() + SECONDS
    while not stands_still(pid):
        assert time.monotonic() < deadline, "the worker never paused"


def stop(pid: int) -> None:
    """Stop a process, and wait until each of its threads has stopped: on busy processors one may go on for a while."""
    os.kill(pid, signal.SIGSTOP)
    if sys.platform != "linux":
        return
    deadline = time.monotonic() + SECONDS
    while any(_fields(stat)[0] != b"T" for stat in _files_of_threads(pid, "stat")):
        assert time.monotonic() < deadline, "the process does not stop"
        time.sleep(0.001)


def stop_in_a_write(process: subprocess.Popen[bytes]) -> None:
    """Stop a child for a moment while it waits to write more than its pipe holds."""
    wait_until_still(process.pid)
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    process.send_signal(signal.SIGCONT)


def stands_still(pid: int) -> bool:
    """Return whether a process waits: it uses no processor time, and would not if the machine were free."""
    before = _processor_time(pid)
    time.sleep(0.3)  # the span over which it is observed
    return _processor_time(pid) == before and not _runnable(pid)


def _processor_time(pid: int) -> str:
    """Return the processor time that a process has used, to a hundredth of a second."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.exists():
        return str(_fields(stat.read_bytes())[11:13])
    return subprocess.run(["ps", "-o", "time=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout


def _runnable(pid: int) -> bool:
    """Return whether any thread of a process is ready to run, waits for the disk, or was stopped."""
    return any(_fields(stat)[0] in (b"R", b"D", b"T") for stat in _files_of_threads(pid, "stat"))


def child_processes(pid: int) -> list[int]:
    """Return the process ids of the children of a process. Only Linux shows them."""
    return [int(child) for found in _files_of_threads(pid, "children") for child in found.split()]


def _files_of_threads(pid: int, name: str) -> Iterator[bytes]:
    """Yield the content of a file of each thread of a process; nothing of a thread that ends meanwhile."""
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            yield (thread / name).read_bytes()


def _fields(stat: bytes) -> list[bytes]:
    return stat.rpartition(b")")[2].split()
