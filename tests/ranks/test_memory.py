"""Two ranks need little more than half of the memory of one process each, while they load, too."""

import re
from pathlib import Path
from typing import Any

import pytest

from random_model import write_model
from support.process.ranked_worker import RankedWorker
from support.process.worker_process import WorkerProcess

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

MB = 1e6


def resident_peak(pid: int) -> int:
    """Return the most memory that a process has had, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return 1024 * int(found[1])


def peaks(worker: WorkerProcess, model: Path, pids: list[int]) -> tuple[float, float]:
    """Return MLX's peak and the largest growth of a process by a load and an answer, in MB."""
    done = worker.call({"id": "g", "cmd": "generate", "prompt": [9] * 40, "max_tokens": 4, "ignore_eos": True})
    assert done["event"] == "done"
    memory = worker.call({"id": "s", "cmd": "stats"})["memory"]["peak_bytes"]
    return memory / MB, max(resident_peak(pid) for pid in pids) / MB


def test_the_peak_of_each_of_two_ranks_is_six_tenths_of_one_process_s(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"hidden_size": 1024, "num_hidden_layers": 4, "intermediate_size": 2816}
    heads: dict[str, Any] = {"num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 64}
    large = write_model(tmp_path / "large", "qwen3", end_scale=0, **sizes, **heads)
    small = write_model(tmp_path / "small", "qwen3", end_scale=0, num_key_value_heads=4)
    with WorkerProcess() as worker:
        assert worker.load(small, id="small")["weights_bytes"] < 2 * MB
        without = resident_peak(worker.process.pid) / MB
        assert worker.load(large)["weights_bytes"] > 200 * MB
        one, one_resident = peaks(worker, large, [worker.process.pid])
        assert worker.quit() == 0
    with RankedWorker(2) as worker:
        worker.load(small, id="small")
        pids = [worker.process.pid, *worker.followers()]
        without_ranks = max(resident_peak(pid) for pid in pids) / MB
        worker.load(large)
        ranked, ranked_resident = peaks(worker, large, pids)
        assert worker.quit() == 0
    print(f"MLX: {ranked:.0f} of {one:.0f} MB; grown by {ranked_resident - without_ranks:.0f} of", end=" ")
    print(f"{one_resident - without:.0f} MB")
    assert ranked <= 0.6 * one
    assert ranked_resident - without_ranks <= 0.6 * (one_resident - without)
