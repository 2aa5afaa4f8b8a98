"""A model that is split over ranks answers as it does in one process, token for token in float32."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from random_model import write_model
from support.process.ranked_worker import RankedWorker
from support.process.worker_process import Event, WorkerProcess
from support.process.worker_thread import RealOnThread

pytestmark = pytest.mark.slow

SCHEMA: Final = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string", "maxLength": 9}},
    "required": ["a", "b"],
}
_WEATHER: Final = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
TOOLS: Final = [{"type": "function", "function": _WEATHER}]


def prompt(seed: int, length: int) -> list[int]:
    return [5 + (seed * 37 + index * 11) % 400 for index in range(length)]


REQUESTS: Final[dict[str, Event]] = {
    "greedy": {"cmd": "generate", "prompt": prompt(1, 40), "max_tokens": 40, "temperature": 0},
    "seeded": {"cmd": "generate", "prompt": prompt(2, 9), "max_tokens": 30, "temperature": 0.9, "seed": 7},
    "choices": {"cmd": "generate", "prompt": prompt(3, 90), "max_tokens": 12, "temperature": 1, "n": 3, "seed": 1},
    "long": {"cmd": "generate", "prompt": prompt(4, 700), "max_tokens": 8, "temperature": 0},
    "again": {"cmd": "generate", "prompt": prompt(4, 720), "max_tokens": 8, "temperature": 0},
    "logprobs": {"cmd": "generate", "prompt": prompt(5, 20), "max_tokens": 6, "temperature": 0, "logprobs": True},
    "penalized": {
        **{"cmd": "generate", "prompt": prompt(6, 30), "max_tokens": 30, "temperature": 0.7, "seed": 3},
        **{"top_p": 0.9, "repetition_penalty": 1.2, "logit_bias": {"17": 2.0}},
    },
    "json": {
        **{"cmd": "chat", "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 60, "seed": 5},
        **{"temperature": 0.8, "format": {"type": "json_schema", "schema": SCHEMA}},
    },
    "tool": {
        **{"cmd": "chat", "messages": [{"role": "user", "content": "Weather?"}], "max_tokens": 60, "seed": 6},
        **{"temperature": 0.8, "tools": TOOLS, "tool_choice": "required"},
    },
}


def tokens(worker: WorkerProcess, id: str) -> dict[int, list[int]]:
    """Return the tokens of each choice of an answer, however they are spread over events."""
    found: dict[int, list[int]] = {}
    for event in worker.of(id):
        if event["event"] in ("token", "tool_call"):
            found.setdefault(event.get("choice", 0), []).extend(event.get("token_ids", []))
    return found


def outputs(worker: WorkerProcess, id: str) -> list[Any]:
    """Return what an answer consists of."""
    terminal = worker.terminal(id)
    assert terminal["event"] == "done", terminal
    events = [event for event in worker.of(id) if event["event"] in ("token", "tool_call")]
    calls = [(event.get("name"), event.get("arguments")) for event in events if event["event"] == "tool_call"]
    logprobs = [round(each["logprob"], 2) for event in events for each in event.get("logprobs", [])]
    return [tokens(worker, id), tuple(calls), logprobs, terminal["finish_reason"]]


def answers(worker: WorkerProcess, model: Path) -> dict[str, Any]:
    """Load a model, and return the answers to all requests, which run together, then again with the cache."""
    worker.load(model)
    found: dict[str, Any] = {}
    for turn in ("first", "cached"):
        worker.send(*({"id": f"{turn} {name}", **request} for name, request in REQUESTS.items()))
        found |= {f"{turn} {name}": outputs(worker, f"{turn} {name}") for name in REQUESTS}
    return found


@pytest.fixture
def one() -> Iterator[WorkerProcess]:
    with RealOnThread() as worker:
        yield worker


@pytest.mark.parametrize(
    ("family", "ranks"),
    [
        ("qwen3_next", 2),  # a pipeline of layers, with recurrent states
        pytest.param("qwen3", 2, marks=pytest.mark.nightly),  # the next tests split it in this way too
        pytest.param("qwen2", 3, marks=pytest.mark.nightly),  # a pipeline, since three ranks cannot share four heads
        pytest.param("llama", 2, marks=pytest.mark.nightly),
        pytest.param("qwen3_moe", 2, marks=pytest.mark.nightly),
        *(pytest.param(family, 4, marks=pytest.mark.nightly) for family in ("llama", "qwen3", "qwen3_moe")),
    ],
)
def test_ranks_answer_as_one_process(
    one: WorkerProcess, folder_of: Callable[[str], Path], family: str, ranks: int
) -> None:
    expected = answers(one, folder_of(family))
    one.quit()
    with RankedWorker(ranks) as worker:
        got = answers(worker, folder_of(family))
        assert worker.quit() == 0
    assert got == expected


def joined(worker: WorkerProcess, model: Path, seed: int, count: int) -> dict[str, dict[int, list[int]]]:
    """Load a model, let requests join, stop and be cancelled at random, and return the tokens of each answer."""
    choose = random.Random(seed)
    ids = [f"r{number}" for number in range(count)]
    worker.load(model)
    for number, id in enumerate(ids):
        request = {
            **{"id": id, "cmd": "generate", "max_tokens": choose.choice([1, 20, 80])},
            **{"prompt": prompt(number % 5, choose.choice([5, 60, 400])), "seed": number},
            **{"temperature": choose.choice([0, 0.9]), "n": choose.choice([1, 1, 2]), "stop": ["e"] * (number % 2)},
        }
        worker.send(request)
        if choose.random() < 0.4:
            worker.send({"id": f"c{number}", "cmd": "cancel", "target": choose.choice(ids[: number + 1])})
        if choose.random() < 0.3:
            worker.terminal(choose.choice(ids[: number + 1]))
    worker.send({"id": "clear", "cmd": "cache", "action": "clear"})
    for id in ids:
        worker.terminal(id)
    worker.terminal("clear")
    assert worker.quit() == 0
    worker.check_terminals(ids)
    return {id: tokens(worker, id) for id in ids}


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 15), *(pytest.param(seed, 40, marks=pytest.mark.nightly) for seed in range(5))]
)
def test_ranks_answer_as_one_process_through_joins_cancels_and_stops(
    one: WorkerProcess, folder_of: Callable[[str], Path], seed: int, count: int
) -> None:
    """A cancel may come later in one of them, so each answer is compared as far as both go."""
    expected = joined(one, folder_of("qwen3"), seed, count)
    with RankedWorker(2) as worker:
        got = joined(worker, folder_of("qwen3"), seed, count)
    for id, choices in got.items():
        for choice, found in choices.items():
            alone = expected[id].get(choice, [])
            assert found[: len(alone)] == alone[: len(found)], (id, choice)


@pytest.mark.parametrize("count", [20, pytest.param(500, marks=pytest.mark.nightly)])
def test_a_cancel_at_any_moment_leaves_one_terminal(folder_of: Callable[[str], Path], count: int) -> None:
    choose = random.Random(0)
    with RankedWorker(2) as worker:
        worker.load(folder_of("llama"))
        for number in range(count):
            tokens = choose.choice([1, 3, 40])
            worker.send(
                {"id": f"r{number}", "cmd": "generate", "prompt": prompt(number, 30), "max_tokens": tokens},
                {"id": f"c{number}", "cmd": "cancel", "target": f"r{number - choose.choice([0, 0, 1, 2])}"},
            )
            if choose.random() < 0.3:
                worker.terminal(f"r{number}")
        for number in range(count):
            worker.terminal(f"r{number}")
        assert worker.quit() == 0
        worker.check_terminals(f"{kind}{number}" for number in range(count) for kind in "rc")


@pytest.mark.parametrize(
    ("mib", "length", "ends"),
    [(1, 225, {"length"}), pytest.param(4, 900, {"length", "capacity"}, marks=pytest.mark.nightly)],
)
def test_ranks_stay_together_when_memory_is_short(
    folder_of: Callable[[str], Path], mib: int, length: int, ends: set[str]
) -> None:
    """Requests wait, cached prompts are evicted, and answers end for want of memory, on all ranks alike."""
    count = 6
    with RankedWorker(2, "--memory-limit", str(mib << 20)) as worker:
        worker.load(folder_of("llama"))
        for number in range(count):
            request = {"cmd": "generate", "prompt": prompt(number, length), "max_tokens": length * 5 // 9}
            worker.send({"id": f"r{number}", **request, "temperature": 0, "ignore_eos": True})
        reasons = {worker.terminal(f"r{number}").get("finish_reason") for number in range(count)}
        assert worker.call({"id": "s", "cmd": "stats"})["cache"]["evictions"] > 0
        assert worker.quit() == 0
        assert reasons == ends


@pytest.mark.nightly
@pytest.mark.parametrize("options", [{"dtype": "bfloat16"}, {"dtype": "bfloat16", "quantize": (4, 32)}])
def test_rounding_does_not_part_the_ranks(tmp_path: Path, options: dict[str, Any]) -> None:
    """Ranks that computed other tokens would end: they compare a checksum at each step."""
    folder = write_model(tmp_path / "model", "llama", end_scale=0, num_key_value_heads=4, **options)
    with RankedWorker(2) as worker:
        worker.load(folder)
        for seed in range(5):
            requests = {f"{seed} {name}": {**request, "seed": seed} for name, request in REQUESTS.items()}
            worker.send(*({"id": id, "temperature": 0.9, **request} for id, request in requests.items()))
            for id in requests:
                outputs(worker, id)
        assert worker.quit() == 0
