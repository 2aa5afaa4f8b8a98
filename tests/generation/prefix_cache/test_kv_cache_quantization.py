"""The load options of the KV cache: its maximum length, and its quantization."""

from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models.cache import QuantizedKVCache

from lmwire_protocol import Generate, RequestError
from random_model import write_custom_model, write_model
from support.runners.generation_runners import FolderOf, ask, ask_alone, choices, open_runner, refusal, stock

pytestmark = pytest.mark.slow

PROMPTS = ([10, 20, 30, 40], [300, 7, 9], list(range(300, 400)))

ADDS_UP_ITS_KEYS = """
import mlx.core as mx
import mlx.nn as nn

class ModelArgs:
    from_dict = classmethod(lambda cls, config: cls())

class Model(nn.Module):
    layers = [None]

    def __init__(self, args):
        super().__init__()
        self.weight = mx.ones(1)

    def __call__(self, tokens, cache):
        heads = mx.zeros((*tokens.shape, 1, 64)).swapaxes(1, 2)
        keys, values = cache[0].update_and_fetch(heads, heads)
        return mx.zeros((*tokens.shape, 272)) + keys.sum() * self.weight
"""


def greedy(folder: Path, prompt: list[int], count: int, *, group_size: int, bits: int) -> list[int]:
    """Return the model's answer with mlx-lm's quantized cache."""
    network = stock(folder)[0]
    cache = [QuantizedKVCache(group_size, bits) for _ in network.layers]
    network(mx.array([prompt[:-1]]), cache=cache)
    tokens = prompt[-1:]
    for _ in range(count):
        tokens.append(int(mx.argmax(network(mx.array([tokens[-1:]]), cache=cache)[0, -1])))
    return tokens[1:]


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """Heads that are wide enough to be quantised, in a model that does not end its turn."""
    return write_model(tmp_path / "wide", "llama", head_dim=32, end_scale=0)


@pytest.mark.parametrize("bits", [4, 8])
def test_answers_are_those_of_mlx_lms_quantised_cache(bits: int, wide: Path) -> None:
    runner = open_runner(wide, kv_bits=bits)
    requests = [Generate(prompt=prompt, max_tokens=20) for prompt in PROMPTS]
    wanted = [greedy(wide, prompt, 20, group_size=32, bits=bits) for prompt in PROMPTS]
    assert [answer.token_ids for answer in ask_alone(runner, *requests)] == wanted
    assert [answer.token_ids for answer in ask(runner, *requests)] == wanted


def test_what_is_cached_gives_the_same_answer_again(wide: Path) -> None:
    runner = open_runner(wide, kv_bits=8)
    request = Generate(prompt=PROMPTS[2], max_tokens=20)
    first, again = ask_alone(runner, request, request)
    assert first.token_ids == again.token_ids
    stats = runner.cache_stats()
    assert stats is not None and stats.hits == 1


def test_heads_of_64_share_a_scale_among_64(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", "llama", head_dim=64, end_scale=0)
    answer = ask(open_runner(folder, kv_bits=4), Generate(prompt=PROMPTS[2], max_tokens=20))[0]
    assert answer.token_ids == greedy(folder, PROMPTS[2], 20, group_size=64, bits=4)


def test_quantised_caches_are_served_one_at_a_time(wide: Path) -> None:
    assert open_runner(wide, kv_bits=8).max_batch_size == 1


def test_the_choices_of_one_prompt_are_those_of_prompts_alone(wide: Path) -> None:
    runner = open_runner(wide, kv_bits=8)
    fields: dict[str, Any] = {"prompt": PROMPTS[2], "max_tokens": 10, "temperature": 1.0}
    together = choices(runner, Generate(n=3, **fields), seed=5)
    alone = ask_alone(runner, *[Generate(**fields)] * 3, seeds=(5, 6, 7))
    assert [answer.token_ids for answer in together] == [answer.token_ids for answer in alone]


@pytest.mark.parametrize("family", ["gemma3_text", "mamba", "qwen3_next"])
def test_kv_bits_are_refused_where_a_cache_is_no_plain_one(family: str, folder_of: FolderOf) -> None:
    error = refusal(folder_of(family), kv_bits=8)
    assert (error.code, error.field) == ("unsupported", "kv_bits")
    assert "Cache" in error.message


def test_kv_bits_are_refused_for_heads_that_are_too_narrow(folder_of: FolderOf) -> None:
    error = refusal(folder_of("llama"), kv_bits=8)
    assert (error.code, error.field) == ("unsupported", "kv_bits")
    assert "16 wide" in error.message


def test_kv_bits_are_refused_where_attention_computes_on_the_keys_by_itself(tmp_path: Path) -> None:
    error = refusal(write_custom_model(tmp_path / "model", ADDS_UP_ITS_KEYS), kv_bits=8, trust_remote_code=True)
    assert (error.code, error.field) == ("unsupported", "kv_bits")
    assert "attention" in error.message


def test_the_context_is_the_models_own_or_shorter(folder_of: FolderOf) -> None:
    assert open_runner(folder_of("llama")).model.context_len == 4096
    runner = open_runner(folder_of("llama"), context_len=40)
    assert runner.model.context_len == 40
    answer = ask(runner, Generate(prompt=[1] * 30, ignore_eos=True))[0]
    assert (answer.generated, answer.finish_reason) == (10, "length")
    with pytest.raises(RequestError) as refused:
        runner.add(1, Generate(prompt=[1] * 41), 0)
    assert refused.value.code == "context_overflow"


def test_a_context_of_one_token_loads(folder_of: FolderOf) -> None:
    assert open_runner(folder_of("llama"), context_len=1).model.context_len == 1


def test_a_context_above_the_models_own_is_refused_with_the_numbers(folder_of: FolderOf) -> None:
    error = refusal(folder_of("llama"), context_len=4097)
    assert (error.code, error.field) == ("invalid_request", "context_len")
    assert "4096" in error.message
