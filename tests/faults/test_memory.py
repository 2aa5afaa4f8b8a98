"""Memory over a long life: models and requests release all of it, and a limit holds.

The long lives run at night. For each commit, the tests of each kind of model release one model (test_memory.py there).
"""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from random_model import write_model
from support.process.worker_process import Event, WorkerProcess

pytestmark = pytest.mark.slow

CYCLES = 50
SETTLED = 10
"""Cycles after which everything that is needed once is there."""
REQUESTS = int(os.environ.get("LMWIRE_SOAK_REQUESTS", "160"))
"""Number of requests in the short version; the long one has 2000."""
SETTLED_REQUESTS = REQUESTS // 10
TOGETHER = 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "small")


def active_bytes(worker: WorkerProcess, id: str) -> int:
    return worker.call({"id": id, "cmd": "stats"})["memory"]["active_bytes"]


@pytest.mark.nightly
def test_loading_and_unloading_again_and_again_takes_no_more_memory(tmp_path: Path) -> None:
    # Most of it are experts that no token asks for: it is large, and quick.
    folder = write_model(
        tmp_path / "experts", "qwen3_next", num_experts=512, num_hidden_layers=2, full_attention_interval=2
    )
    with WorkerProcess() as worker:
        sizes, weights = [], 0
        for cycle in range(CYCLES):
            weights = worker.load(folder, id=f"load {cycle}")["weights_bytes"]
            worker.call({"id": f"generate {cycle}", "cmd": "generate", "prompt": "a b", "max_tokens": 3})
            assert worker.call({"id": f"unload {cycle}", "cmd": "unload"})["freed_bytes"] >= weights
            sizes.append(worker.resident_bytes)
        assert weights > 40 * 2**20
        assert max(sizes[SETTLED:]) - min(sizes[SETTLED:]) < weights / 10
        assert worker.quit() == 0


def mixed_request(number: int, chance: random.Random) -> Event:
    """One of all sorts, a few of them wrong."""
    sampling: dict[str, Any] = chance.choice([{}, {"temperature": 1.0, "top_p": 0.9}, {"logprobs": True}, {"n": 3}])
    common = {"id": f"r{number}", "max_tokens": chance.randrange(1, 12), "seed": number, **sampling}
    words = "so many words " * chance.choice([1, 1, 2, 20])
    kind = chance.random()
    if kind < 0.05:
        return {**common, "cmd": "generate", "prompt": [10**6]}
    if kind < 0.55:
        return {**common, "cmd": "generate", "prompt": f"{chance.randrange(50)} {words}"}
    return {**common, "cmd": "chat", "messages": [{"role": "user", "content": f"{chance.randrange(50)} {words}"}]}


@pytest.mark.nightly
def test_mixed_requests_leave_no_memory_behind_and_each_is_answered_once(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "wide", hidden_size=128, intermediate_size=512)
    chance = random.Random(6)
    with WorkerProcess() as worker:
        worker.load(folder)
        sizes = []
        for start in range(0, REQUESTS, TOGETHER):
            requests = [mixed_request(number, chance) for number in range(start, start + TOGETHER)]
            cancelled = {request["id"] for request in requests if chance.random() < 0.2}
            worker.send(*requests, *({"id": f"c {id}", "cmd": "cancel", "target": id} for id in cancelled))
            for request in requests:
                worker.terminal(request["id"])
            if start % SETTLED_REQUESTS < TOGETHER:
                worker.call({"id": f"clear {start}", "cmd": "cache", "action": "clear"})
                sizes.append(active_bytes(worker, f"stats {start}"))
        worker.check_terminals(f"r{number}" for number in range(REQUESTS))
        _first, settled, *later = sizes
        assert max(later) <= settled * 1.02, sizes
        stats = worker.call({"id": "stats", "cmd": "stats"})
        assert stats["requests"]["active"] == stats["requests"]["queued"] == 0
        assert worker.quit() == 0


def test_loads_and_requests_stay_within_a_limit(folder: Path) -> None:
    with WorkerProcess("--memory-limit", str(4 * 2**20)) as worker:
        worker.load(folder)
        error = worker.call({"id": "large", "cmd": "load", "path": "builtin:tiny"})
        assert (error["code"], error["loaded"]) == ("out_of_memory", True)
        many = [
            {"id": f"g{number}", "cmd": "generate", "prompt": [300] * 1500, "max_tokens": 5, "seed": 0}
            for number in range(12)
        ]
        worker.send(*many)
        answers = [(worker.terminal(request["id"])["event"], worker.token_ids(request["id"])) for request in many]
        assert answers == [answers[0]] * 12 and answers[0][0] == "done"
        worker.load("builtin:tiny", id="forced", force=True)
        assert worker.quit() == 0


@pytest.mark.parametrize("values", [[], ["0"], ["-1"], ["much"]])
def test_a_limit_that_is_none_is_a_usage_error(values: list[str]) -> None:
    with WorkerProcess("--memory-limit", *values) as worker:
        assert worker.wait_end() == 64
        assert b"--memory-limit needs a number of bytes" in worker.stderr
