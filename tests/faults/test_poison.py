"""Requests at the edge of what is allowed, next to healthy ones, on a real model: the healthy ones do not notice."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from random_model import write_model
from support.process.worker_process import WorkerProcess

pytestmark = pytest.mark.slow

VOCABULARY = 512
MAX_INT = 2**53 - 1
SAMPLED = {"prompt": "a sea", "max_tokens": 12, "temperature": 1.0, "seed": 5}
GREEDY = {"prompt": "a sea", "max_tokens": 12}
PENALISED = {**GREEDY, "repetition_penalty": 1.5}

POISON: dict[str, dict[str, Any]] = {
    "the whole vocabulary": {"prompt": list(range(VOCABULARY)), "max_tokens": 12},
    "one token": {"prompt": [0], "max_tokens": 12},
    "the last token": {"prompt": [VOCABULARY - 1], "max_tokens": 12},
    "only NUL": {"prompt": "\0" * 40, "max_tokens": 12},
    "beyond the basic plane": {"prompt": "\U0001f600\U0010ffff\U0001d54f" * 20, "max_tokens": 12},
    "special tokens as text": {"prompt": "<|im_end|><|endoftext|>" * 9, "max_tokens": 12},
    "one endless word": {"prompt": "a" * 2000, "max_tokens": 12},
    "separators": {"prompt": "\u2028\u2029\u0085\r\n\x1b[2J", "max_tokens": 12, "stop": ["\u2028"]},
    "as many stop strings as there may be": {**GREEDY, "stop": [chr(97 + i) * 1024 for i in range(16)]},
    "the longest stop strings of one letter": {**GREEDY, "stop": ["k" * n for n in range(1009, 1025)]},
    "a stop string of each letter": {**GREEDY, "stop": list("qwxyzöäüß")},
    "the most tokens": {**GREEDY, "prompt": [9] * 4080, "max_tokens": MAX_INT},
    "the largest top_k": {**SAMPLED, "top_k": MAX_INT},
    "a top_k above the vocabulary": {**SAMPLED, "top_k": VOCABULARY + 1},
    "top_k of one": {**SAMPLED, "top_k": 1},
    "the hottest": {**SAMPLED, "temperature": 100.0},
    "hardly warm": {**SAMPLED, "temperature": 1e-300},
    "the least temperature": {**SAMPLED, "temperature": 5e-324},
    "the least top_p": {**SAMPLED, "top_p": 1e-300},
    "the least top_p among few": {**SAMPLED, "top_p": 5e-324, "top_k": 3},
    "min_p of all": {**SAMPLED, "min_p": 1.0},
    "the least min_p": {**SAMPLED, "min_p": 5e-324},
    "everything at once": {**SAMPLED, "temperature": 1e-300, "top_p": 1e-300, "top_k": MAX_INT, "min_p": 1.0},
    "the lowest seed": {**SAMPLED, "seed": 0},
    "the highest seed": {**SAMPLED, "seed": MAX_INT},
    "the least penalty": {**PENALISED, "repetition_penalty": 1e-300},
    "the greatest penalty": {**PENALISED, "repetition_penalty": 10.0, "penalty_window": MAX_INT},
    "a window without end": {**PENALISED, "penalty_window": 0},
    "a window of a thousand million": {**PENALISED, "penalty_window": 10**9},
}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an empty prompt": ({"prompt": ""}, "invalid_request"),
    "a token beyond the vocabulary": ({"prompt": [VOCABULARY]}, "invalid_request"),
    "the largest token": ({"prompt": [MAX_INT]}, "invalid_request"),
    "more tokens than the context": ({"prompt": [1] * 100_000}, "context_overflow"),
    "more text than the context": ({"prompt": "sea " * 100_000}, "context_overflow"),
    "an empty stop string": ({"prompt": "a", "stop": [""]}, "invalid_request"),
    "17 stop strings": ({"prompt": "a", "stop": ["a"] * 17}, "invalid_request"),
    "no temperature": ({"prompt": "a", "temperature": -1e-300}, "invalid_request"),
    "top_p of nothing": ({"prompt": "a", "top_p": 0}, "invalid_request"),
    "one more than the highest seed": ({"prompt": "a", "seed": MAX_INT + 1}, "invalid_request"),
}

HEALTHY: list[dict[str, Any]] = [
    {"prompt": f"prompt {i}", "max_tokens": 60, "seed": i, "temperature": temperature}
    for i, temperature in enumerate((0, 0, 0.7, 1.0, 1.5))
]

SAME_AS_GREEDY = (
    "top_k of one",
    "hardly warm",
    "the least temperature",
    "the least top_p",
    "the least top_p among few",
    "min_p of all",
    "everything at once",
    "as many stop strings as there may be",
)
SAME_AS_SAMPLED = ("the largest top_k", "a top_k above the vocabulary", "the least min_p")
SAME_AS_ENDLESS_WINDOW = ("a window of a thousand million",)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    model = write_model(tmp_path_factory.mktemp("models") / "qwen3", vocab_size=VOCABULARY, end_scale=0)
    with WorkerProcess() as worker:
        worker.load(model)
        yield worker


def test_a_poisonous_request_ends_once_and_does_not_change_others(worker: WorkerProcess) -> None:
    alone = []
    for i, request in enumerate(HEALTHY):
        worker.call({"id": f"alone {i}", "cmd": "generate", **request})
        alone.append(worker.token_ids(f"alone {i}"))
    requests = [(f"healthy {i}", request) for i, request in enumerate(HEALTHY)]
    requests += POISON.items()
    requests += [(name, fields) for name, (fields, _) in REFUSED.items()]
    random.Random(4).shuffle(requests)
    worker.send(*({"id": id, "cmd": "generate", **request} for id, request in requests))
    for id, _ in requests:
        worker.terminal(id)
    worker.check_terminals(id for id, _ in requests)
    for name in [*POISON, *(f"healthy {i}" for i in range(len(HEALTHY)))]:
        done = worker.terminal(name)
        assert done["event"] == "done", (name, done)
        assert done["usage"]["completion_tokens"] == len(worker.token_ids(name)) > 0, name
    assert [worker.token_ids(f"healthy {i}") for i in range(len(HEALTHY))] == alone
    for name, (_, code) in REFUSED.items():
        assert worker.terminal(name).get("code") == code, name


def test_extreme_settings_have_their_documented_effect(worker: WorkerProcess) -> None:
    twins = {"greedy": SAME_AS_GREEDY, "sampled": SAME_AS_SAMPLED, "endless": SAME_AS_ENDLESS_WINDOW}
    plain = {"greedy": GREEDY, "sampled": SAMPLED, "endless": {**PENALISED, "penalty_window": 0}}
    for kind, names in twins.items():
        worker.call({"id": kind, "cmd": "generate", **plain[kind]})
        for name in names:
            worker.call({"id": f"{name}, alone", "cmd": "generate", **POISON[name]})
            assert worker.text(f"{name}, alone") == worker.text(kind), name


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": ""}],
        [{"role": "user", "content": []}],
        [{"role": "assistant", "content": "\0"}] * 50,
        [{"role": "system", "content": "{{ 7 * 7 }}{% for x in y %}"}],
        [{"role": "user", "content": "<|im_end|>\n<|im_start|>system\n"}],
        [{"role": "user", "content": [{"type": "text", "text": "\U0010ffff"}] * 100}],
    ],
    ids=["empty", "no parts", "NUL", "template code", "special tokens", "many parts"],
)
def test_odd_conversations_are_answered(worker: WorkerProcess, messages: list[Any], request: Any) -> None:
    done = worker.call({"id": request.node.name, "cmd": "chat", "messages": messages, "max_tokens": 3})
    assert done["finish_reason"] == "length"
