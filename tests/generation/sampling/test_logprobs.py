"""Log-probabilities: the model's own, for the rows that ask, whatever else is in the batch."""

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from lmwire_protocol import Generate
from lmwire_protocol.events import Logprob, TopLogprob
from lmwire_protocol.limits import LOGPROB_CHARACTERS
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.generation.sampling.logprobs import BatchLogprobs, LogprobFormatter
from support.runners.generation_runners import ask, stock

VOCABULARIES = (5, 20, 21, 400, 5003)
"""Below and above the number of alternatives, and such as no block size divides."""

describe = LogprobFormatter(lambda token: str(token).encode())


def asking(count: int = 20) -> Generate:
    return Generate(prompt="", logprobs=True, top_logprobs=count)


SILENT = Generate(prompt="")


def logits_of(rows: int, vocabulary: int, dtype: mx.Dtype = mx.float32) -> mx.array:
    return (mx.random.normal((rows, vocabulary), key=mx.random.key(vocabulary)) * 3).astype(dtype)


def look(requests: list[Generate], logits: mx.array, tokens: list[int], xp: Any) -> list[Logprob | None]:
    handles = BatchLogprobs(requests, xp=xp)(logits, mx.array(tokens, mx.uint32))
    return [None if handle is None else describe(handle) for handle in handles]


@pytest.mark.slow
@pytest.mark.parametrize("xp", [np, mx])
@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16])
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_logprobs_are_the_logarithms_of_the_softmax(xp: Any, dtype: mx.Dtype, vocabulary: int) -> None:
    logits = logits_of(7, vocabulary, dtype)
    tokens = [(row * 31) % vocabulary for row in range(7)]
    values = np.array(logits.astype(mx.float32)).astype(np.float64)
    expected = values - np.log(np.exp(values).sum(axis=-1, keepdims=True))
    for row, logprob in enumerate(look([asking()] * 7, logits, tokens, xp)):
        assert logprob is not None
        assert logprob.token_id == tokens[row]
        assert logprob.logprob == pytest.approx(expected[row, tokens[row]], abs=5e-6)
        assert [top.logprob for top in logprob.top] == pytest.approx(np.sort(expected[row])[::-1][:20], abs=5e-6)
        for top in logprob.top:
            assert top.logprob == pytest.approx(expected[row, top.token_id], abs=5e-6)
        assert len({top.token_id for top in logprob.top}) == min(20, vocabulary)


@pytest.mark.parametrize("xp", [np, mx])
@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16])
def test_a_rows_logprobs_are_the_same_alone_and_in_any_batch(xp: Any, dtype: mx.Dtype) -> None:
    chance = random.Random(1)
    requests = [chance.choice([SILENT, asking(0), asking(1), asking(5), asking(20)]) for _ in range(24)]
    logits = logits_of(24, 3001, dtype)
    tokens = [chance.randrange(3001) for _ in requests]
    together = look(requests, logits, tokens, xp)
    alone = [look([requests[n]], logits[n : n + 1], [tokens[n]], xp)[0] for n in range(24)]
    assert together == alone
    for fields, logprob in zip(requests, together, strict=True):
        assert (logprob is not None) == fields.logprobs
        assert logprob is None or len(logprob.top) == fields.top_logprobs


@pytest.mark.parametrize("xp", [np, mx])
def test_equally_probable_tokens_come_in_the_order_of_their_ids(xp: Any) -> None:
    logits = mx.zeros((2, 300))
    logits[:, [200, 7, 41]] = 2.0
    (first, _) = look([asking(3)] * 2, logits, [7, 7], xp)
    assert first is not None
    assert [top.token_id for top in first.top] == [7, 41, 200]


@pytest.mark.parametrize("xp", [np, mx])
def test_a_token_with_probability_0_has_no_logprob(xp: Any) -> None:
    logits = mx.array([[0.0, -mx.inf, -mx.inf]])
    (logprob,) = look([asking(2)], logits, [1], xp)
    assert logprob == Logprob(1, "1", None, top=[TopLogprob(0, "0", 0.0), TopLogprob(1, "1", None)])
    assert logprob is not None and math.copysign(1, logprob.top[0].logprob or 0) == 1, "no -0.0"


def test_without_a_request_for_logprobs_none_are_computed() -> None:
    logprobs = BatchLogprobs([SILENT, SILENT])
    assert logprobs(logits_of(2, 50), mx.array([1, 2])) == [None, None]
    assert logprobs.pending == []


def test_a_handle_of_an_earlier_step_stays_as_it_was() -> None:
    logprobs = BatchLogprobs([asking(1)])
    (first,) = logprobs(mx.array([[0.0, 5.0]]), mx.array([0]))
    (second,) = logprobs(mx.array([[9.0, 0.0]]), mx.array([1]))
    assert first is not None and second is not None
    assert (describe(first).token_id, describe(first).top[0].token_id) == (0, 1)
    assert (describe(second).token_id, describe(second).top[0].token_id) == (1, 0)


@pytest.mark.parametrize(
    ("data", "text", "shown"),
    [
        (b" plain", " plain", None),
        ("é€".encode(), "é€", None),
        (b"\xe2\x82", "\ufffd", [0xE2, 0x82]),
        (b"a\xff", "a\ufffd", [0x61, 0xFF]),
        (b"", "", None),
        (b"x" * (LOGPROB_CHARACTERS + 1), "x" * LOGPROB_CHARACTERS, None),
    ],
)
def test_a_token_shows_its_bytes_where_its_text_is_incomplete(data: bytes, text: str, shown: list[int] | None) -> None:
    (handle,) = BatchLogprobs([asking(1)])(mx.array([[0.0]]), mx.array([0]))
    assert handle is not None
    logprob = LogprobFormatter(lambda _: data)(handle)
    assert (logprob.token, logprob.bytes) == (text, shown)
    assert (logprob.top[0].token, logprob.top[0].bytes) == (text, shown)


@pytest.mark.slow
def test_an_answer_has_the_models_own_log_probabilities_whatever_is_done_to_its_logits(
    runner_of: Callable[[str], GenerationRunner], folder_of: Callable[[str], Path]
) -> None:
    changed = Generate(
        prompt=[9, 8, 7],
        max_tokens=12,
        temperature=2,
        repetition_penalty=1.5,
        logit_bias={65: 4.0},
        ignore_eos=True,
        logprobs=True,
        top_logprobs=2,
    )
    silent = Generate(prompt=[5] * 9, max_tokens=12, ignore_eos=True)
    model, _ = stock(folder_of("qwen3"))
    answer, other = ask(runner_of("qwen3"), changed, silent)
    logits = model(mx.array([[9, 8, 7, *answer.token_ids]]))[0, 2:-1].astype(mx.float32)
    expected = np.array(logits - mx.logsumexp(logits, axis=-1, keepdims=True))
    assert other.logprobs == []
    assert [logprob.token_id for logprob in answer.logprobs] == answer.token_ids
    for place, logprob in enumerate(answer.logprobs):
        assert logprob.logprob == pytest.approx(expected[place, logprob.token_id], abs=1e-4)
        assert [top.token_id for top in logprob.top] == np.argsort(-expected[place])[:2].tolist()
