"""Requests that a runner refuses or fails, each without harm to the others."""

import json
from pathlib import Path

import pytest

from lmwire_protocol import Generate, RequestError
from random_model import write_custom_model, write_model
from support.runners.generation_runners import Driver, RunnerOf, ask, chat, expected, open_runner

pytestmark = pytest.mark.slow

FAILS_ON_200 = """
import mlx.core as mx
from mlx_lm.models import llama

ModelArgs = llama.ModelArgs

class Model(llama.Model):
    def __call__(self, tokens, cache=None, **kwargs):
        if (tokens == 200).any().item():
            raise ValueError("token 200 hurts")
        return super().__call__(tokens, cache=cache, **kwargs)
"""
CACHES_THAT_DO_NOT_JOIN = """
from mlx_lm.models import llama
from mlx_lm.models.cache import ConcatenateKVCache

ModelArgs = llama.ModelArgs

class Model(llama.Model):
    def make_cache(self):
        return [ConcatenateKVCache() for _ in self.layers]
"""


SPOILT_BY_PADDING = """
from mlx_lm.models import llama

ModelArgs = llama.ModelArgs

class Model(llama.Model):
    def __call__(self, tokens, cache=None, **kwargs):
        several_prompts = tokens.shape[0] > 1 and tokens.shape[1] > 1
        return super().__call__(tokens + several_prompts, cache=cache, **kwargs)
"""


def with_code(folder: Path, source: str) -> Path:
    """A llama whose architecture comes with its folder."""
    write_model(folder, "llama")
    (folder / "model.py").write_text(source)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_file": "model.py"}))
    return folder


@pytest.mark.parametrize(("prompt", "field"), [("", "prompt"), ([5, 512], "prompt[1]"), ([2**53 - 1], "prompt[0]")])
def test_a_prompt_that_the_model_cannot_read_is_named(prompt: str | list[int], field: str, runner_of: RunnerOf) -> None:
    with pytest.raises(RequestError) as refusal:
        runner_of("qwen3").add(1, Generate(prompt=prompt), 0)
    assert (refusal.value.code, refusal.value.field) == ("invalid_request", field)


def test_a_prompt_longer_than_the_context_is_refused_with_the_numbers(runner_of: RunnerOf) -> None:
    with pytest.raises(RequestError) as refusal:
        runner_of("qwen3").add(1, Generate(prompt=[1] * 4097), 0)
    assert refusal.value.code == "context_overflow"
    assert "4097" in refusal.value.message and "4096" in refusal.value.message


def test_a_refused_request_leaves_nothing_behind(runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    with pytest.raises(RequestError):
        runner.add(1, Generate(prompt=[9999]), 0)
    assert ask(runner, chat("hello", max_tokens=1))[0].generated == 1


def test_what_a_chat_template_refuses_is_the_requests_fault(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["chat_template"] = "{{ raise_exception('roles must alternate') }}"
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(RequestError) as refusal:
        open_runner(folder).add(1, chat("hello"), 0)
    assert (refusal.value.code, refusal.value.field) == ("invalid_request", "messages")
    assert "roles must alternate" in refusal.value.message


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_an_exception_in_the_model_fails_the_request_at_fault_alone(steps: int, tmp_path: Path) -> None:
    runner = open_runner(with_code(tmp_path / "model", FAILS_ON_200), trust_remote_code=True)
    driver = Driver(runner)
    request = chat("hello", max_tokens=50)
    driver.add(1, request)
    driver.steps(steps)
    driver.add(2, Generate(prompt=[1, 200, 3]))
    well, error = (answer for answer in driver.finish().values())
    assert well.token_ids == expected(tmp_path / "model", request, True).token_ids
    assert error.error is not None and error.error.code == "engine_error"
    assert "token 200 hurts" in error.error.message


def test_a_model_that_always_fails_does_not_load(tmp_path: Path) -> None:
    source = FAILS_ON_200.replace("(tokens == 200).any().item()", "True")
    with pytest.raises(RequestError) as refusal:
        open_runner(with_code(tmp_path / "model", source), trust_remote_code=True)
    assert refusal.value.code == "bad_model" and "token 200 hurts" in refusal.value.message


def test_code_that_does_not_run_is_a_bad_model(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as refusal:
        open_runner(write_custom_model(tmp_path / "model", "import nonesuch"), trust_remote_code=True)
    assert refusal.value.code == "bad_model" and "nonesuch" in refusal.value.message


def test_a_model_whose_caches_do_not_join_serves_one_request_after_another(tmp_path: Path) -> None:
    folder = with_code(tmp_path / "model", CACHES_THAT_DO_NOT_JOIN)
    runner = open_runner(folder, trust_remote_code=True)
    assert runner.max_batch_size == 1
    for text in ("hello", "a somewhat longer text " * 20):
        request = chat(text, max_tokens=30)
        assert ask(runner, request)[0].token_ids == expected(folder, request, True).token_ids


def test_a_model_that_cannot_process_prompts_together_gets_them_one_by_one(tmp_path: Path) -> None:
    folder = with_code(tmp_path / "model", SPOILT_BY_PADDING)
    requests = [chat("text " * length, max_tokens=15) for length in (1, 7, 3)]
    answers = ask(open_runner(folder, trust_remote_code=True), *requests)
    for request, answer in zip(requests, answers, strict=True):
        assert answer.token_ids == expected(folder, request, True).token_ids


def test_a_model_without_layers_or_caches_does_not_load(tmp_path: Path) -> None:
    source = """
import mlx.core as mx
import mlx.nn as nn

class ModelArgs:
    from_dict = classmethod(lambda cls, config: cls())

class Model(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.weight = mx.ones(1)
"""
    with pytest.raises(RequestError) as refusal:
        open_runner(write_custom_model(tmp_path / "model", source), trust_remote_code=True)
    assert refusal.value.code == "bad_model" and "layers" in refusal.value.message
