"""Vectors of texts, equal to mlx-vlm's own, whatever other requests run."""

import contextlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_vlm.embedding_loader import load_embedding_model

from lmwire_protocol import Embed, ImagePart, Media, RequestError, TextPart, Tokenize, TokensPart
from lmwire_worker.embeddings.network import EmbeddingInput
from lmwire_worker.embeddings.runner import MAX_STEP_TOKENS, EmbeddingRunner
from lmwire_worker.engine.interface import EmbeddingOutput, Failed
from support.models.random_embeddings import FAMILIES, write_embedding_model
from support.process.worker_process import SECONDS
from support.runners.embedding_runners import embed, open_runner

pytestmark = pytest.mark.slow

TEXTS = ["the sea", "the sea is wide and deep", "a", "café 数学 🙂", "the hill " * 20]


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_embedding_model(tmp_path_factory.mktemp("models") / request.param, request.param)


@pytest.fixture(scope="module")
def runner(folder: Path) -> EmbeddingRunner:
    return open_runner(folder)


def alone(folder: Path, runner: EmbeddingRunner, texts: Sequence[str]) -> list[Any]:
    """Return mlx-vlm's vectors, one text at a time."""
    network = load_embedding_model(folder)
    network.pooling_config = {"pooling_mode": "mean"}
    tokens = [runner.tokenize(Tokenize(prompt=text))[0] for text in texts]
    return [np.array(network(mx.array([row]), attention_mask=mx.ones((1, len(row)))).text_embeds)[0] for row in tokens]


def test_the_vectors_of_a_batch_are_those_that_mlx_vlm_gives_for_each_text_alone(
    folder: Path, runner: EmbeddingRunner
) -> None:
    (vectors,) = embed(runner, Embed(input=[*TEXTS]))
    for vector, expected in zip(vectors, alone(folder, runner, TEXTS), strict=True):
        np.testing.assert_allclose(vector, expected, atol=2e-5)


def test_requests_at_the_same_time_do_not_mix(runner: EmbeddingRunner) -> None:
    requests = [Embed(input=[text, *TEXTS[::-1]]) for text in TEXTS]
    together = embed(runner, *requests)
    for request, vectors in zip(requests, together, strict=True):
        (expected,) = embed(runner, request)
        np.testing.assert_allclose(vectors, expected, atol=2e-5)


def test_different_texts_have_different_vectors_of_length_1(runner: EmbeddingRunner) -> None:
    (vectors,) = embed(runner, Embed(input=[*TEXTS]))
    assert [sum(number**2 for number in vector) for vector in vectors] == pytest.approx([1] * len(TEXTS))
    assert len({tuple(vector) for vector in vectors}) == len(TEXTS)


def test_a_vector_is_cut_and_then_scaled(runner: EmbeddingRunner) -> None:
    (whole,), (cut,), (raw,) = embed(
        runner,
        Embed(input=["the sea"]),
        Embed(input=["the sea"], dimensions=5),
        Embed(input=["the sea"], dimensions=5, normalize=False),
    )
    assert raw == pytest.approx(whole[:5], abs=2e-5)
    length = sum(number**2 for number in raw) ** 0.5
    assert cut == pytest.approx([number / length for number in raw], abs=2e-5)


def test_a_part_and_its_text_are_the_same_input(runner: EmbeddingRunner) -> None:
    ((part, text),) = embed(runner, Embed(input=[TextPart("the sea"), "the sea"]))
    assert part == pytest.approx(text, abs=2e-5)


def test_a_text_and_its_tokens_have_one_vector(runner: EmbeddingRunner) -> None:
    tokens = [TokensPart(runner.tokenize(Tokenize(prompt=text))[0]) for text in TEXTS]
    ((*vectors,),) = embed(runner, Embed(input=[*TEXTS, *tokens]))
    for text, given in zip(vectors[: len(TEXTS)], vectors[len(TEXTS) :], strict=True):
        np.testing.assert_allclose(given, text, atol=2e-5)


def test_nothing_is_added_to_tokens(tmp_path: Path) -> None:
    prompted = {"prompts": {"query": "find: "}, "default_prompt_name": "query"}
    runner = open_runner(write_embedding_model(tmp_path / "prompted", settings=prompted))
    bare = open_runner(write_embedding_model(tmp_path / "bare"))
    alone, prompted_tokens = (each.tokenize(Tokenize(prompt="the sea"))[0] for each in (bare, runner))
    assert len(alone) < len(prompted_tokens)
    (given, text), (expected,) = (
        *embed(runner, Embed(input=[TokensPart(alone), "the sea"])),
        embed(bare, Embed(input=["the sea"]))[0],
    )
    np.testing.assert_allclose(given, expected, atol=2e-5)
    assert text != pytest.approx(expected, abs=1e-3)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> EmbeddingRunner:
    return open_runner(write_embedding_model(tmp_path_factory.mktemp("models") / "bert"))


@pytest.mark.parametrize(
    ("request_", "code", "field"),
    [
        (Embed(input=["a", "x " * 300]), "context_overflow", "input[1]"),
        (Embed(input=["a", ""]), "invalid_request", "input[1]"),
        (Embed(input=["a", TokensPart([1] * 257)]), "context_overflow", "input[1]"),
        (Embed(input=["a", TokensPart([1, 511, 512])]), "invalid_request", "input[1].token_ids[2]"),
        (Embed(input=["a", ImagePart(Media(data=""))]), "unsupported", "input[1]"),
        (Embed(input=["a"], dimensions=65), "invalid_request", "dimensions"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name_and_leaves_nothing(
    bert: EmbeddingRunner, request_: Embed, code: str, field: str
) -> None:
    with pytest.raises(RequestError) as refused:
        bert.add(1, request_, 0)
    assert (refused.value.code, refused.value.field) == (code, field)
    assert len(embed(bert, Embed(input=["a"]))[0]) == 1


def test_a_step_is_bounded_and_requests_take_turns(bert: EmbeddingRunner) -> None:
    bert.add(1, Embed(input=["the sea is wide and deep " * 10] * 100), 0)
    bert.add(2, Embed(input=["the sea"] * 2), 0)
    first, second = bert.step(), bert.step()
    assert {outcome.key for outcome in first} == {1}
    assert 2 in {outcome.key for outcome in second}
    for outcomes in (first, second):
        lengths = [outcome.prompt_tokens for outcome in outcomes if isinstance(outcome, EmbeddingOutput)]
        assert max(lengths) * len(lengths) <= MAX_STEP_TOKENS
    bert.remove(1)
    bert.remove(2)


def test_a_request_that_is_removed_leaves_the_others(bert: EmbeddingRunner) -> None:
    bert.add(1, Embed(input=["the sea"] * 100), 0)
    assert bert.remove(1) == []
    assert len(embed(bert, Embed(input=["the sea"] * 50))[0]) == 50


def test_a_request_at_fault_fails_alone(bert: EmbeddingRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    network = bert.network
    assert network is not None
    embedding = network.embed

    def fails_on_one(rows: Sequence[EmbeddingInput], **rest: Any) -> Any:
        if any(len(row.tokens) == 1 for row in rows):
            raise RuntimeError("no memory for that: out of memory")
        return embedding(rows, **rest)

    monkeypatch.setattr(network, "embed", fails_on_one)
    bert.add(1, Embed(input=["a"]), 0)
    bert.add(2, Embed(input=["the sea"]), 0)
    failed, embedded = sorted(bert.step(), key=lambda outcome: outcome.key)
    assert isinstance(failed, Failed) and isinstance(embedded, EmbeddingOutput)
    assert (failed.key, failed.error.code, embedded.key) == (1, "out_of_memory", 2)
    with contextlib.suppress(KeyError):
        bert.remove(2)
    assert len(bert.requests) == 0


def test_a_large_input_is_tokenized_beside_the_engine(runner: EmbeddingRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of the requests beside it go on while its tokenizer is held up."""
    large = "the sea " * 5000
    goes_on, prepared = threading.Event(), threading.Event()
    real = runner.inputs.tokens

    def tokens(text: str, field: str) -> list[int]:
        assert text != large or goes_on.wait(SECONDS)
        return real(text, field)

    monkeypatch.setattr(runner.inputs, "min_tokens", lambda text: 0)  # so that it is not refused before
    monkeypatch.setattr(runner.inputs, "tokens", tokens)
    asked = Embed(input=["a", large])
    held_up = [runner.prepare(request, prepared.set) for request in (asked, Tokenize(prompt=large))]
    assert len(embed(runner, Embed(input=["the sea"]))[0]) == 1
    assert not any(preparation is None or preparation.done for preparation in held_up)
    goes_on.set()
    assert prepared.wait(SECONDS)
    with pytest.raises(RequestError, match=r"input\[1\]: comes to \d+ tokens") as refused:
        runner.add(7, asked, 0, prepared=held_up[0])
    assert refused.value.code == "context_overflow"


def test_small_inputs_wait_for_no_thread(runner: EmbeddingRunner) -> None:
    assert runner.prepare(Embed(input=[*TEXTS]), lambda: None) is None
    assert runner.prepare(Tokenize(prompt=TEXTS[0]), lambda: None) is None


def test_a_text_that_cannot_fit_is_refused_before_it_is_tokenized(
    runner: EmbeddingRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "the sea " * 10_000
    monkeypatch.setattr(runner.inputs, "tokens", None)
    with pytest.raises(RequestError, match=r"input\[0\]: comes to \d+ tokens at least") as refused:
        runner.add(7, Embed(input=[text]), 0)
    assert (refused.value.code, refused.value.field) == ("context_overflow", "input[0]")


def test_a_text_that_there_is_no_memory_to_tokenize_is_refused(
    runner: EmbeddingRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_budget", 2**20)
    monkeypatch.setattr(runner.inputs, "tokens", None)
    with pytest.raises(RequestError, match=r"prompt: to tokenize it takes 1\.5 MiB, and there are") as refused:
        runner.tokenize(Tokenize(prompt="x" * 10_000))
    assert (refused.value.code, refused.value.field) == ("out_of_memory", "prompt")
