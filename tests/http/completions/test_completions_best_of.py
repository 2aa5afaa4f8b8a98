"""Completions that choose the best of several answers, and those that begin without a prompt."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from openai import OpenAI

import lmwire_worker
from support.http.http_server import Server, served

TINY = "builtin:tiny"
SAMPLED: Any = {"temperature": 1.5, "seed": 3, "max_tokens": 6}


@pytest.fixture(scope="module")
def client(tiny_server: Server) -> OpenAI:
    return OpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0)


@pytest.fixture(scope="module")
def beginning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    """Serve the built-in model with a tokenizer that begins each text with a token."""
    folder = tmp_path_factory.mktemp("beginning") / "model"
    shutil.copytree(Path(lmwire_worker.__file__).parent / "builtin" / "tiny", folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    begin, text = {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    [id] = [each["id"] for each in tokenizer["added_tokens"] if each["content"] == "<|endoftext|>"]
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [begin, text],
        "pair": [begin, text],
        "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [id], "tokens": ["<|endoftext|>"]}},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "bos_token": "<|endoftext|>"}))
    with served(str(folder)) as server:
        yield OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


@pytest.mark.slow
def test_the_best_answers_have_the_highest_mean_log_probability(client: OpenAI) -> None:
    every = client.completions.create(model=TINY, prompt="I am", n=5, logprobs=0, **SAMPLED)
    means = {
        choice.text: fmean(choice.logprobs.token_logprobs) for choice in every.choices if choice.logprobs is not None
    }
    assert len(means) > 2
    best = client.completions.create(model=TINY, prompt=["I am", "I am"], n=2, best_of=5, **SAMPLED)
    expected = sorted((choice.text for choice in every.choices), key=lambda text: means[text], reverse=True)[:2]
    assert [choice.text for choice in best.choices] == expected * 2
    assert [choice.index for choice in best.choices] == [0, 1, 2, 3]
    assert best.choices[0].logprobs is None
    assert best.usage and every.usage
    assert best.usage.completion_tokens == 2 * every.usage.completion_tokens


@pytest.mark.slow
def test_best_of_may_equal_n_in_a_stream(client: OpenAI) -> None:
    chunks = [*client.completions.create(model=TINY, prompt="I am", n=2, best_of=2, stream=True, **SAMPLED)]
    assert {choice.index for chunk in chunks for choice in chunk.choices} == {0, 1}


@pytest.mark.slow
def test_without_a_prompt_the_model_begins_a_text(beginning: OpenAI) -> None:
    answer = beginning.post(
        "/completions", body={"max_tokens": 4, "ignore_eos": True, "temperature": 0}, cast_to=dict[str, Any]
    )
    assert answer["usage"]["prompt_tokens"] == 1
    assert answer["usage"]["completion_tokens"] == 4
    empty = beginning.completions.create(model="default", prompt="", max_tokens=4, temperature=0)
    assert answer["choices"][0]["text"].startswith(empty.choices[0].text)
