"""A check that a worker frees a model's memory when the model is unloaded."""

from collections.abc import Callable
from pathlib import Path

from support.process.worker_process import Event, WorkerProcess

CYCLES = 5
SETTLED = 2
"""Number of cycles after which everything that is allocated once is in memory."""


def check_memory_comes_back(folder: Path, request: Callable[[str], Event]) -> None:
    """Check that repeated loads and unloads of a model free its memory.

    Args:
        folder: Folder of a model with weights of more than 20 MiB.
        request: Function that returns a request with the given id, which the model can answer.
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
