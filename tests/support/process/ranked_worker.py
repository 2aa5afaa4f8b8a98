"""A worker whose models are split over ranks, and its followers."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from support.process.process_waits import wait_gone, watch
from support.process.worker_process import WorkerProcess

RANK_SITE: Final = Path(__file__).parents[2] / "parting_site"
SILENCE_S: Final = 8
"""Silence of a rank that ends a worker in tests, in seconds. `make shake` stops a process for less."""
BACKEND: Final = os.environ.get("LMWIRE_TEST_RANK_BACKEND", "ring")
"""Backend of the ranks: `nccl` tries the same on a machine with several GPUs."""


class RankedWorker(WorkerProcess):
    """A worker of some ranks.

    Args:
        ranks: Number of ranks on this machine, or a hosts file.
        arguments: Further arguments of `python -m lmwire_worker`.
        popen: Keywords of the process.
    """

    def __init__(self, ranks: int | Path, *arguments: str, **popen: Any) -> None:
        option = "--ranks" if isinstance(ranks, int) else "--hosts"
        environment = {"SILENCE_S": str(SILENCE_S), **popen.pop("env", os.environ)}
        environment["PYTHONPATH"] = os.pathsep.join([str(RANK_SITE), environment.get("PYTHONPATH", "")])
        super().__init__(option, str(ranks), "--rank-backend", BACKEND, *arguments, env=environment, **popen)

    def followers(self) -> list[int]:
        """Return the process ids of the followers, which exist once something is loaded."""
        return [pid for pid in _children(self.process.pid) if "--follow" in _arguments(pid)]

    def signal_rank(self, rank: int, number: signal.Signals) -> None:
        """Send one rank a signal."""
        os.kill([self.process.pid, *self.followers()][rank], number)

    def wait_all_gone(self, pids: list[int]) -> None:
        """Wait until processes that were followers have ended."""
        for pid in pids:
            try:
                watched = watch(pid)
            except ProcessLookupError:
                continue
            wait_gone(watched)


def _children(pid: int) -> list[int]:
    direct: list[int] = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/task/{thread}/children") as file:
            direct += [int(child) for child in file.read().split()]  # a thread may end before it is read
    return sorted(direct)


def _arguments(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().split("\0")
    except (ProcessLookupError, FileNotFoundError):
        return []
