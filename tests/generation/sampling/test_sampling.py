"""Sampling: the distribution that was asked for, whatever else is in the batch."""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.sample_utils import apply_min_p, apply_top_k, apply_top_p, apply_xtc

from lmwire_protocol import Generate
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.generation.sampling.sampler import BatchSampler, TokenWeights, Xtc, uniform_at
from support.runners.generation_runners import ask

VOCABULARIES = (50, 512, 3000)
"""Below, between and above the numbers of candidates that the filters look at first."""


def request(**fields: Any) -> Generate:
    return Generate(prompt="", **fields)


def sample(sampler: BatchSampler, logits: mx.array) -> list[int]:
    return np.array(sampler(logits)).tolist()


def logits_of(rows: int, vocabulary: int, dtype: mx.Dtype = mx.float32, scale: float = 3) -> mx.array:
    generator = np.random.default_rng(rows * vocabulary)
    return mx.array(generator.normal(size=(rows, vocabulary)) * scale).astype(dtype)


def weights_of(requests: list[Generate], logits: mx.array, xp: Any, special: Sequence[int] = ()) -> mx.array:
    count = len(requests)
    xtc = Xtc(requests, range(count), [0] * count, special, xp)
    return mx.array(TokenWeights(requests, xp, xtc)(xp.array(logits)))


def any_request(chance: random.Random) -> Generate:
    return request(
        temperature=chance.choice([0, 0.3, 1, 2.5]),
        top_p=chance.choice([1, 1, 0.4, 0.95]),
        top_k=chance.choice([0, 0, 1, 7, 40, 2000]),
        min_p=chance.choice([0, 0, 0.02, 0.3]),
        xtc_probability=chance.choice([0, 0.5, 1]),
        xtc_threshold=chance.choice([0.0, 0.01, 0.1]),
    )


@pytest.mark.parametrize("xp", [np, mx])
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("top_p", [1.0, 0.9, 0.3, 0.99])
@pytest.mark.parametrize("top_k", [0, 1, 20])
@pytest.mark.parametrize("min_p", [0.0, 0.05])
def test_filters_keep_the_tokens_that_mlx_lm_keeps(
    xp: Any, vocabulary: int, top_p: float, top_k: int, min_p: float
) -> None:
    logits = logits_of(4, vocabulary)
    filtered = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
    if top_p < 1:
        filtered = apply_top_p(filtered, top_p)
    if min_p:
        filtered = apply_min_p(filtered, min_p)
    if top_k:
        filtered = apply_top_k(filtered, top_k)
    fields = request(temperature=0.8, top_p=top_p, top_k=top_k, min_p=min_p)
    weights = weights_of([fields] * 4, logits, xp)
    differing = (weights > 0) != (filtered > -math.inf)
    probabilities = mx.softmax(logits, axis=-1)
    moved = float(np.array((differing * probabilities).sum(axis=-1)).max())
    assert moved < 1e-4, "at the border of top_p sums are rounded"
    tempered = mx.softmax(filtered / 0.8, axis=-1)
    assert mx.allclose(weights / weights.sum(axis=-1, keepdims=True), tempered, atol=1e-5).item()


@pytest.mark.slow
@pytest.mark.parametrize("xp", [np, mx])
@pytest.mark.parametrize("threshold", [0.0, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("filters", [{}, {"top_p": 0.9}, {"top_k": 3}, {"top_p": 0.8, "top_k": 7, "min_p": 0.03}])
@pytest.mark.parametrize("special", [[], [1, 7, 8, 10**9]])
def test_xtc_keeps_the_tokens_that_mlx_lm_keeps(
    xp: Any, threshold: float, filters: dict[str, Any], special: list[int]
) -> None:
    logits = logits_of(40, 60)
    logits[:, 1] = logits.max(axis=-1) + mx.arange(40) % 3 - 1  # one of the special tokens is often a top choice
    fields = request(temperature=0.8, xtc_probability=1, xtc_threshold=threshold, **filters)
    filtered = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
    if fields.top_p < 1:
        filtered = apply_top_p(filtered, fields.top_p)
    if fields.min_p:
        filtered = apply_min_p(filtered, fields.min_p)
    filtered = apply_xtc(filtered, 1, threshold, special[:3])
    if fields.top_k:
        filtered = apply_top_k(filtered, fields.top_k)
    weights = weights_of([fields] * 40, logits, xp, special)
    expected = mx.softmax(filtered / 0.8, axis=-1)
    assert mx.array_equal(weights > 0, expected > 0).item()
    assert mx.allclose(weights / weights.sum(axis=-1, keepdims=True), expected, atol=1e-5).item()


@pytest.mark.parametrize("xp", [np, mx])
def test_xtc_happens_as_often_as_asked_whatever_is_drawn(xp: Any) -> None:
    rows = 20_000
    logits = mx.broadcast_to(mx.log(mx.array([0.5, 0.3, 0.15, 0.05])), (rows, 4))
    fields = request(temperature=1, xtc_probability=0.3, xtc_threshold=0.1)
    counts = Counter(sample(BatchSampler([fields] * rows, range(rows), [0] * rows, xp=xp), logits))
    # Three times in ten only the third and the fourth token are left, in the proportion of 3 to 1.
    for token, probability in enumerate([0.35, 0.21, 0.7 * 0.15 + 0.225, 0.7 * 0.05 + 0.075]):
        deviation = math.sqrt(rows * probability * (1 - probability))
        assert abs(counts[token] - rows * probability) < 5 * deviation


def test_xtc_does_not_disturb_rows_that_do_not_ask_for_it() -> None:
    logits = logits_of(3, 100, scale=0.1)
    plain, strange = request(temperature=1, top_p=0.8), request(temperature=1, xtc_probability=1, xtc_threshold=0)
    mixed = sample(BatchSampler([plain, strange, plain], [1, 2, 3], [0] * 3), logits)
    alike = sample(BatchSampler([plain] * 3, [1, 2, 3], [0] * 3), logits)
    assert (mixed[0], mixed[2]) == (alike[0], alike[2])
    assert mixed[1] == np.argmin(np.array(logits[1])), "of all the tokens, the least probable stays"


@pytest.mark.parametrize("xp", [np, mx])
@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16])
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_a_row_draws_the_same_alone_and_in_any_batch(xp: Any, dtype: mx.Dtype, vocabulary: int) -> None:
    chance = random.Random(vocabulary)
    requests = [any_request(chance) for _ in range(24)]
    seeds = [chance.randrange(2**53) for _ in requests]
    logits = logits_of(24, vocabulary, dtype, scale=1)  # flat, so that bfloat16 has many equal values
    together = sample(BatchSampler(requests, seeds, [5] * 24, xp=xp), logits)
    backwards = sample(BatchSampler(requests[::-1], seeds[::-1], [5] * 24, xp=xp), logits[::-1])
    alone = [sample(BatchSampler([requests[n]], [seeds[n]], [5], xp=xp), logits[n : n + 1])[0] for n in range(24)]
    assert together == alone == backwards[::-1]


def test_a_row_that_is_rebuilt_in_the_middle_goes_on_with_the_same_numbers() -> None:
    logits = logits_of(1, 512)
    sampler = BatchSampler([request(temperature=1)], [7], [10])
    straight = [sample(sampler, logits)[0] for _ in range(150)]
    rebuilt = [sample(BatchSampler([request(temperature=1)], [7], [10 + n]), logits)[0] for n in range(150)]
    assert straight == rebuilt


def test_draws_follow_the_distribution() -> None:
    probabilities = np.array([0.5, 0.25, 0.15, 0.08, 0.02])
    rows = 20_000
    logits = mx.broadcast_to(mx.log(mx.array(probabilities)), (rows, 5)).astype(mx.float32)
    counts = Counter(sample(BatchSampler([request(temperature=1)] * rows, range(rows), [0] * rows), logits))
    for token, probability in enumerate(probabilities):
        deviation = math.sqrt(rows * probability * (1 - probability))
        assert abs(counts[token] - rows * probability) < 5 * deviation


def test_random_numbers_are_even_over_seeds_and_over_positions() -> None:
    many, one = np.arange(100_000, dtype=np.uint64), np.array(3, np.uint64)
    for numbers in (uniform_at(many, one), uniform_at(one, many)):
        assert numbers.min() >= 0 and numbers.max() < 1
        histogram, _ = np.histogram(numbers, bins=20, range=(0, 1))
        assert abs(histogram - 5000).max() < 5 * math.sqrt(5000)


def test_temperature_0_takes_the_most_probable_token_beside_rows_that_draw() -> None:
    logits = logits_of(3, 100)
    tokens = sample(BatchSampler([request(), request(temperature=2), request()], [1, 2, 3], [0] * 3), logits)
    best = np.argmax(np.array(logits), axis=-1)
    assert (tokens[0], tokens[2]) == (best[0], best[2])


@pytest.mark.parametrize("xp", [np, mx])
@pytest.mark.parametrize("temperature", [1e-300, 1e-9, 100.0])
def test_any_temperature_gives_a_token_that_the_filters_keep(xp: Any, temperature: float) -> None:
    logits = logits_of(8, 300)
    fields = request(temperature=temperature, top_k=1)
    best = np.argmax(np.array(logits), axis=-1).tolist()
    assert sample(BatchSampler([fields] * 8, range(8), [0] * 8, xp=xp), logits) == best


@pytest.mark.parametrize("xp", [np, mx])
@pytest.mark.parametrize("temperature", [0, 1e-9, 1, 100])
def test_a_banned_token_comes_only_where_nothing_else_may(xp: Any, temperature: float) -> None:
    free = mx.array([[-1e30, 1.0, -1e30, -1e30]] * 8)
    only = mx.array([[-1e30, -mx.inf, -mx.inf, -mx.inf]] * 8)
    sampler = BatchSampler([request(temperature=temperature)] * 8, range(8), [0] * 8, xp=xp)
    assert sample(sampler, free) == [1] * 8
    assert sample(sampler, only) == [0] * 8


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answer_alone_together_and_in_another_order(
    runner_of: Callable[[str], GenerationRunner],
) -> None:
    runner = runner_of("qwen3")
    chance = random.Random(2)
    requests = [
        Generate(prompt=[9] * (1 + 3 * n), max_tokens=12, temperature=1, top_p=0.9, top_k=n, repetition_penalty=1.1)
        for n in range(9)
    ]
    seeds = [chance.randrange(2**53) for _ in requests]
    together = ask(runner, *requests, seeds=seeds)
    backwards = ask(runner, *requests[::-1], seeds=seeds[::-1])
    alone = [ask(runner, requests[n], seeds=[seeds[n]])[0] for n in range(9)]
    tokens = [answer.token_ids for answer in together]
    assert tokens == [answer.token_ids for answer in alone] == [answer.token_ids for answer in backwards[::-1]]


@pytest.mark.slow
def test_another_seed_gives_another_answer(runner_of: Callable[[str], GenerationRunner]) -> None:
    fields = Generate(prompt="hello", max_tokens=20, temperature=1)
    first, second = ask(runner_of("qwen3"), fields, fields, seeds=[1, 2])
    assert first.token_ids != second.token_ids
