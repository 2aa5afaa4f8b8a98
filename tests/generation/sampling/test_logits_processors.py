"""Bias, penalties and the ban on ends: mlx-lm's own numbers, for every row of a batch as if it were alone."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.sample_utils import make_logits_processors

from lmwire_protocol import Generate, RequestError
from lmwire_worker.generation.preparation import check_logit_bias
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.generation.sampling.logits_processors import (
    BANNED_LOGIT,
    WINDOW_STEP,
    EosBan,
    Penalties,
)
from support.runners.generation_runners import ask, stock

VOCABULARY = 80


def request(**fields: Any) -> Generate:
    return Generate(prompt="", **fields)


def any_request(chance: random.Random) -> Generate:
    return request(
        repetition_penalty=chance.choice([1, 1, 1.3, 0.7, 2]),
        presence_penalty=chance.choice([0, 0, 1.5, -0.4]),
        frequency_penalty=chance.choice([0, 0, 0.3, -2]),
        penalty_window=chance.choice([0, 1, 5, 64]),
        logit_bias=chance.choice([{}, {3: 5.5, 70: -100.0}, {chance.randrange(VOCABULARY): 1.25}]),
    )


def by_mlx_lm(fields: Generate, history: list[int], logits: mx.array) -> mx.array:
    window = fields.penalty_window
    processors = make_logits_processors(
        fields.logit_bias,
        fields.repetition_penalty,
        window,
        fields.presence_penalty,
        window,
        fields.frequency_penalty,
        window,
    )
    for process in processors:
        logits = process(mx.array(history), logits)
    return logits


def logits_of(rows: int, dtype: mx.Dtype = mx.float32) -> mx.array:
    return (mx.random.normal((rows, VOCABULARY), key=mx.random.key(rows)) * 3).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_penalties_of_every_row_are_those_of_mlx_lm(seed: int) -> None:
    chance = random.Random(seed)
    requests = [any_request(chance) for _ in range(12)]
    histories = [[chance.randrange(VOCABULARY) for _ in range(chance.randrange(100))] for _ in requests]
    penalise = Penalties(requests, histories)
    logits = logits_of(12)
    for step in range(WINDOW_STEP + 40):  # long enough for rows without a window to outgrow their room
        newest = [chance.randrange(VOCABULARY) for _ in requests]
        result = penalise(logits, mx.array(newest))
        for row, fields in enumerate(requests):
            histories[row].append(newest[row])
            if step % 30 < 2 or step >= WINDOW_STEP - 1:
                expected = by_mlx_lm(fields, histories[row], logits[row : row + 1])
                assert mx.array_equal(result[row], expected[0]).item(), (step, fields)


@pytest.mark.slow
def test_logits_of_half_precision_are_changed_in_float32() -> None:
    fields = request(repetition_penalty=1.3, presence_penalty=0.1, frequency_penalty=0.1, logit_bias={2: 0.3})
    logits = logits_of(2, mx.bfloat16)
    result = Penalties([fields, request()], [[1, 2, 2], [3]])(logits, mx.array([5, 6]))
    expected = by_mlx_lm(fields, [1, 2, 2, 5], logits[:1].astype(mx.float32))
    assert mx.array_equal(result[0], expected[0]).item()
    assert mx.array_equal(result[1], logits[1]).item()


@pytest.mark.parametrize(
    "fields",
    [
        {"repetition_penalty": 1.5, "penalty_window": 0},
        {"frequency_penalty": 1.0},
        {"logit_bias": {7: 9.0}},
        {"ignore_eos": True},
    ],
)
def test_the_logits_that_came_in_stay_as_they_are(fields: dict[str, Any]) -> None:
    logits = logits_of(3)
    before = np.array(logits)
    requests = [request(), request(**fields), request()]
    EosBan(requests, [0] * 3, {4})(Penalties(requests, [[1, 2]] * 3)(logits, mx.array([1, 2, 3])))
    assert (np.array(logits) == before).all()


def test_where_no_row_asks_for_anything_the_logits_pass_untouched() -> None:
    logits = logits_of(2, mx.bfloat16)
    assert Penalties([request()] * 2, [[1], [2]])(logits, mx.array([1, 2])) is logits
    assert EosBan([request()] * 2, [0, 0], {1})(logits) is logits


def banned(ban: EosBan, steps: int) -> list[list[list[int]]]:
    """The banned tokens of each row in each step."""
    logits = logits_of(3)
    return [
        [np.flatnonzero(row == np.float32(BANNED_LOGIT)).tolist() for row in np.array(ban(logits))]
        for _ in range(steps)
    ]


def test_eos_tokens_are_banned_until_min_tokens_are_generated() -> None:
    ban = EosBan([request(min_tokens=3), request(), request(min_tokens=1)], [0, 0, 0], {8, 5})
    assert banned(ban, 5) == [[[5, 8], [], [5, 8]], [[5, 8], [], []], [[5, 8], [], []], [[], [], []], [[], [], []]]


def test_a_ban_that_is_built_in_the_middle_of_an_answer_goes_on() -> None:
    fields = request(min_tokens=3)
    assert banned(EosBan([fields] * 3, [2, 3, 7], {5}), 2) == [[[5], [], []], [[], [], []]]


def test_ignore_eos_never_lets_a_row_end() -> None:
    ban = EosBan([request(ignore_eos=True), request(), request(ignore_eos=True, min_tokens=2)], [0] * 3, {5})
    assert banned(ban, 6) == [[[5], [], [5]]] * 6


def test_a_model_without_end_tokens_has_nothing_to_ban() -> None:
    assert banned(EosBan([request(ignore_eos=True)] * 3, [0] * 3, set()), 1) == [[[], [], []]]


def test_an_end_that_the_model_has_no_logit_for_needs_no_ban() -> None:
    everyone = [request(ignore_eos=True)] * 3
    assert banned(EosBan(everyone, [0] * 3, {5, VOCABULARY, 10**9}), 1) == [[[5], [5], [5]]]
    assert banned(EosBan(everyone, [0] * 3, {VOCABULARY}), 1) == [[[], [], []]]


def test_a_banned_token_is_still_the_best_where_a_grammar_forbids_all_others() -> None:
    logits = EosBan([request(ignore_eos=True)], [0], {5})(logits_of(1, mx.float16))
    masked = mx.where(mx.arange(VOCABULARY) == 5, logits, -mx.inf)
    assert mx.argmax(masked, axis=-1).item() == 5


def test_a_bias_for_an_unknown_token_is_refused_with_its_path() -> None:
    check_logit_bias(request(logit_bias={0: 1.0, 79: 1.0}), VOCABULARY)
    with pytest.raises(RequestError) as refusal:
        check_logit_bias(request(logit_bias={5: 1.0, 80: 1.0}), VOCABULARY)
    assert (refusal.value.code, refusal.value.field) == ("invalid_request", "logit_bias.80")
    assert "vocabulary has 80" in refusal.value.message


@pytest.mark.slow
def test_an_answer_is_what_the_model_gives_under_mlx_lms_processors(
    runner_of: Callable[[str], GenerationRunner], folder_of: Callable[[str], Path]
) -> None:
    penalties = {"repetition_penalty": 1.4, "presence_penalty": 0.5, "frequency_penalty": 0.3, "penalty_window": 6}
    requests = [
        Generate(prompt=[9, 8, 7], max_tokens=15, ignore_eos=True, logit_bias={65: 3.0}, **penalties),
        Generate(prompt=[5] * 9, max_tokens=15, ignore_eos=True),
    ]
    model, tokenizer = stock(folder_of("qwen3"))
    for fields, answer in zip(requests, ask(runner_of("qwen3"), *requests), strict=True):
        history: list[Any] = list(fields.prompt)
        for _ in range(15):
            logits = by_mlx_lm(fields, history, model(mx.array([history]))[:, -1, :].astype(mx.float32))
            logits[:, sorted(tokenizer.eos_token_ids)] = -mx.inf
            history.append(mx.argmax(logits).item())
        assert answer.token_ids == history[-15:]
        assert answer.finish_reason == "length"


@pytest.mark.slow
def test_an_answer_has_min_tokens_before_it_ends(
    runner_of: Callable[[str], GenerationRunner], folder_of: Callable[[str], Path]
) -> None:
    _, tokenizer = stock(folder_of("qwen3"))
    eager: dict[str, Any] = {"prompt": "hello", "max_tokens": 30, "logit_bias": {tokenizer.eos_token_id: 100.0}}
    requests = [Generate(**eager), Generate(**eager, min_tokens=7), Generate(**eager, ignore_eos=True)]
    short, longer, longest = ask(runner_of("qwen3"), *requests)
    assert (len(short.token_ids), short.finish_reason) == (0, "stop")
    assert (len(longer.token_ids), longer.finish_reason) == (7, "stop")
    assert (len(longest.token_ids), longest.finish_reason) == (30, "length")
