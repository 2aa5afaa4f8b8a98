"""Echoed prompts with their log-probabilities, as lm-evaluation-harness asks for them, and with a real model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from openai import OpenAI

from random_model import write_model
from support.http.http_server import Server, served
from support.http.raw_http import asked
from support.runners.generation_runners import stock

HARNESS = {"model": "default", "max_tokens": 1, "logprobs": 1, "seed": 1234, "echo": True, "temperature": 0}
"""The fields of a loglikelihood request of the harness's `local-completions`, besides `prompt`."""
PROMPTS = [[40, 300, 301, 45, 260], [300, 41], [7, 8, 9, 310, 311, 312, 313]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("scored") / "model")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(str(folder)) as server:
        yield server.url


def complete(url: str, prompt: Any, **fields: Any) -> list[Any]:
    answer = asked(url, "POST", "/v1/completions", {"prompt": prompt, "model": "default", "temperature": 0, **fields})
    assert answer.status == 200, answer
    return answer.json["choices"]


def log_softmax(folder: Path, prompt: list[int]) -> Any:
    model, _ = stock(folder)
    logits = np.array(model(mx.array([prompt]))[0].astype(mx.float32)).astype(np.float64)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


@pytest.mark.slow
def test_the_harness_gets_the_models_log_probabilities_of_each_prompt(url: str, folder: Path) -> None:
    choices = complete(url, PROMPTS, **HARNESS)
    assert [choice["index"] for choice in choices] == [0, 1, 2]
    for prompt, choice in zip(PROMPTS, choices, strict=True):
        reported, expected = choice["logprobs"], log_softmax(folder, prompt)
        assert {len(values) for values in reported.values()} == {len(prompt) + 1}
        assert reported["token_logprobs"][0] is reported["top_logprobs"][0] is None
        for place in range(1, len(prompt)):
            own = reported["token_logprobs"][place]
            assert own == pytest.approx(expected[place - 1, prompt[place]], abs=2e-3)
            best = max(reported["top_logprobs"][place].values())
            assert best == pytest.approx(expected[place - 1].max(), abs=2e-3)
            assert (own == best) == (expected[place - 1].argmax() == prompt[place])


@pytest.mark.slow
def test_the_lists_have_a_place_for_the_answer_even_if_the_model_would_end(url: str) -> None:
    eos = {"logit_bias": {"511": 100}}  # the end of the turn is the model's last token
    assert complete(url, PROMPTS[0], **{**HARNESS, "echo": False}, **eos)[0]["logprobs"]["tokens"] == []
    assert len(complete(url, PROMPTS[0], **HARNESS, **eos)[0]["logprobs"]["tokens"]) == len(PROMPTS[0]) + 1


@pytest.mark.slow
def test_without_an_answer_the_lists_are_those_of_the_prompt(url: str) -> None:
    (choice,) = complete(url, "ka lo mi", echo=True, logprobs=2, max_tokens=0)
    reported = choice["logprobs"]
    assert choice["text"] == "".join(reported["tokens"]) == "ka lo mi"
    assert choice["finish_reason"] == "length"
    for offset, token in zip(reported["text_offset"], reported["tokens"], strict=True):
        assert choice["text"][offset:].startswith(token)


@pytest.mark.slow
def test_token_ids_are_echoed_as_their_text(url: str) -> None:
    (choice,) = complete(url, PROMPTS[0], echo=True, max_tokens=4)
    (scored,) = complete(url, PROMPTS[0], echo=True, logprobs=0, max_tokens=4)
    assert choice["logprobs"] is None
    assert choice["text"] == scored["text"]
    assert scored["text"] == "".join(scored["logprobs"]["tokens"])


@pytest.mark.slow
def test_each_of_several_answers_has_the_prompt(url: str) -> None:
    choices = complete(url, "ka lo", n=2, echo=True, logprobs=1, max_tokens=3)
    assert choices[0]["logprobs"] == choices[1]["logprobs"]
    assert choices[0]["logprobs"]["token_logprobs"][0] is None


@pytest.mark.slow
def test_openais_client_reads_them(tiny_server: Server) -> None:
    client = OpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0)
    answer = client.completions.create(
        model="builtin:tiny", prompt=["I am", "Hello"], echo=True, logprobs=1, max_tokens=1
    )
    for choice in answer.choices:
        assert choice.logprobs and choice.logprobs.token_logprobs
        assert all(value <= 0 for value in choice.logprobs.token_logprobs[1:])
