"""A real worker generates what mlx-lm generates, alone or in a batch.

One architecture runs for each commit. tests/generation/batching runs the others, with the engine in the test's process.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from random_model import write_model
from support.nightly import nightly_but
from support.process.worker_process import WorkerProcess

pytestmark = pytest.mark.slow

TOPICS = ["the sea", "café", "数学", "🙂🙃", "a", "x" * 300, "one two three " * 40, "def f(x):"]
MESSAGES = [[{"role": "user", "content": topic}] for topic in TOPICS]
MESSAGES += [[{"role": "system", "content": "Be brief."}, *messages] for messages in MESSAGES[:4]]
MESSAGES += [
    [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": topic}]
    for topic in TOPICS[:4]
]
MAX_TOKENS = 60
ONE_MODEL = pytest.mark.parametrize("model", ["qwen3"], indirect=True)
"""For what the architecture does not change."""


@pytest.fixture(scope="module", params=nightly_but({"qwen3"}, ["qwen3", "llama", "gemma3_text", "mamba"]))
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / request.param
    return write_model(folder, request.param, printable=False)


@pytest.fixture(scope="module")
def worker(model: Path) -> Iterator[WorkerProcess]:
    with WorkerProcess() as worker:
        worker.load(model)
        yield worker


@pytest.fixture(scope="module")
def expected(model: Path) -> list[str]:
    """mlx-lm's own answers, one stream at a time."""
    import mlx_lm

    network, tokenizer = mlx_lm.load(str(model))[:2]
    texts = [
        mlx_lm.generate(
            network,
            tokenizer,
            tokenizer.apply_chat_template(messages, add_generation_prompt=True),
            max_tokens=MAX_TOKENS,
        )
        for messages in MESSAGES
    ]
    return [text.replace("Ā", "\0") for text in texts]  # mlx-lm 0.32 spells a zero byte as U+0100


def test_interleaved_chats_give_the_text_of_single_streams(worker: WorkerProcess, expected: list[str]) -> None:
    """Requests join while others run, in an order of their own."""
    order = list(range(len(MESSAGES)))
    random.Random(3).shuffle(order)
    for start in range(0, len(order), 4):
        batch = order[start : start + 4]
        worker.send(*({"id": f"c{i}", "cmd": "chat", "messages": MESSAGES[i], "max_tokens": MAX_TOKENS} for i in batch))
        worker.first_token(f"c{batch[0]}")
    for i, text in enumerate(expected):
        is_cut = worker.terminal(f"c{i}")["finish_reason"] == "length"
        unfinished = "\ufffd" if is_cut else ""  # mlx-lm writes what it has of a cut character
        assert worker.text(f"c{i}").rstrip(unfinished) == text.rstrip(unfinished)
    assert len(set(expected)) > 4, "the model says something different to each"


def test_the_same_seed_gives_the_same_tokens_alone_together_and_in_another_order(worker: WorkerProcess) -> None:
    rng = random.Random(9)
    requests: list[dict[str, Any]] = [
        {
            "cmd": "generate",
            "prompt": f"{topic} {i}",
            "max_tokens": 30,
            "seed": i * 7,
            "temperature": rng.choice([0, 0.5, 1, 2]),
            "top_p": rng.choice([1, 0.5, 0.9]),
            "top_k": rng.choice([0, 5, 50]),
            "min_p": rng.choice([0, 0.05, 0.3]),
            "repetition_penalty": rng.choice([1, 1, 1.3]),
        }
        for i, topic in enumerate(TOPICS * 2)
    ]
    for i, request in enumerate(requests):
        worker.call({"id": f"alone{i}", **request})
    worker.send(*({"id": f"together{i}", **request} for i, request in enumerate(requests)))
    for i in range(len(requests)):
        worker.terminal(f"together{i}")
    for i, request in reversed(list(enumerate(requests))):
        worker.send({"id": f"backwards{i}", **request})
    for i, request in enumerate(requests):
        worker.terminal(f"backwards{i}")
        alone = worker.token_ids(f"alone{i}")
        assert worker.token_ids(f"together{i}") == alone, request
        assert worker.token_ids(f"backwards{i}") == alone, request
        assert worker.text(f"together{i}") == worker.text(f"alone{i}")


@ONE_MODEL
def test_another_seed_gives_other_tokens(worker: WorkerProcess) -> None:
    request = {"cmd": "generate", "prompt": "once", "max_tokens": 20, "temperature": 1.5}
    for seed in range(4):
        worker.call({"id": f"s{seed}", **request, "seed": seed})
    assert len({tuple(worker.token_ids(f"s{seed}")) for seed in range(4)}) == 4


@ONE_MODEL
def test_a_stop_string_ends_the_text_before_it_wherever_tokens_break(worker: WorkerProcess) -> None:
    request = {"cmd": "generate", "prompt": "the sea", "max_tokens": 50}
    worker.call({"id": "whole", **request})
    whole = worker.text("whole")
    for start in range(1, len(whole) - 3, 3):
        stop = whole[start : start + 3]
        id = f"stop{start}"
        done = worker.call({"id": id, **request, "stop": ["never there", stop]})
        assert (done["finish_reason"], done["stop"]) == ("stop", stop)
        assert worker.text(id) == whole[: whole.index(stop)]
        assert done["usage"]["completion_tokens"] == len(worker.token_ids(id))


@ONE_MODEL
def test_text_held_back_for_a_stop_string_is_sent_at_the_end(worker: WorkerProcess) -> None:
    request = {"cmd": "generate", "prompt": "the sea", "max_tokens": 20}
    worker.call({"id": "w", **request})
    whole = worker.text("w")
    done = worker.call({"id": "h", **request, "stop": [whole[-5:] + "and more"]})
    assert worker.text("h") == whole
    assert done["finish_reason"] == worker.terminal("w")["finish_reason"]
    assert "stop" not in done


@ONE_MODEL
def test_max_tokens_is_kept_to_the_token(worker: WorkerProcess) -> None:
    for count in (0, 1, 2, 7):
        done = worker.call({"id": f"n{count}", "cmd": "generate", "prompt": "count", "max_tokens": count})
        assert done["usage"]["completion_tokens"] <= count
        shown = len(worker.token_ids(f"n{count}"))
        assert done["finish_reason"] == ("length" if shown == count else "stop")


@ONE_MODEL
def test_a_prompt_longer_than_the_context_is_refused_with_the_numbers(worker: WorkerProcess) -> None:
    error = worker.call({"id": "long", "cmd": "generate", "prompt": [9] * 5000})
    assert error["code"] == "context_overflow"
    assert "5000" in error["error"]
    assert "4096" in error["error"]


@ONE_MODEL
def test_token_ids_outside_the_vocabulary_are_named(worker: WorkerProcess) -> None:
    error = worker.call({"id": "ids", "cmd": "generate", "prompt": [5, 6, 99999]})
    assert (error["code"], error["field"]) == ("invalid_request", "prompt[2]")


@ONE_MODEL
def test_more_chats_than_the_runner_has_rows_are_all_answered(worker: WorkerProcess) -> None:
    ids = [f"many{i}" for i in range(80)]
    worker.send(*({"id": id, "cmd": "generate", "prompt": id, "max_tokens": 8} for id in ids))
    for id in ids:
        assert worker.terminal(id)["event"] == "done"
    worker.check_terminals(ids)
