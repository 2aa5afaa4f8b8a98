"""What a model took of a worker's memory is there again when it is unloaded."""

from collections.abc import Callable
from pathlib import Path

from support.process.worker_process import Event, WorkerProcess

CYCLES = 5
SETTLED = 2
"""Cycles after which everything that is needed once is there."""


def check_memory_comes_back(folder: Path, request: Callable[[str], Event]) -> None:
    """Loads and unloads a model again and again.

    Args:
        folder: Of a model that takes 20 MiB at least.
        request: Something that it can answer, under an id.
    """
    with WorkerProcess() as worker:
        loaded, unloaded, weights = [], [], 0
        for cycle in range(CYCLES):
            weights = worker.load(folder, id=f"load {cycle}")["weights_bytes"]
            assert worker.call(request(f"request {cycle}"))["event"] == "done"
            loaded.append(worker.resident_bytes)
            assert worker.call({"id": f"unload {cycle}", "cmd": "unload"})["freed_bytes"] >= weights
            unloaded.append(worker.resident_bytes)
        assert weights > 20 * 2**20
        assert max(unloaded[SETTLED:]) - min(unloaded[SETTLED:]) < weights / 4, unloaded
        for before, after in zip(loaded[SETTLED:], unloaded[SETTLED:], strict=True):
            assert before - after > weights / 2, (loaded, unloaded)
        assert worker.quit() == 0
