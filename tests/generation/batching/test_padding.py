"""Prompts are computed together if a model ignores padding, however it rounds."""

import random
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import pytest
from mlx import nn
from mlx.utils import tree_map_with_path
from mlx_lm.models import qwen3
from mlx_lm.models.cache import ArraysCache, make_prompt_cache

from lmwire_worker.generation.batching import row_group, supports_padding
from lmwire_worker.generation.batching.row_group import compute_chunks
from lmwire_worker.generation.caches import merge_caches
from lmwire_worker.models.logit_comparison import differ_by_rounding
from support.models.small_networks import small_network, special_network

pytestmark = pytest.mark.slow

EXACT = 1e-4
"""Maximum deviation of logits in float32."""
FEW_TOKENS = 8
HALF_UNIT = 1 + 2**-9
"""A factor of half a unit in the last place of bfloat16."""


@pytest.fixture
def deep_network() -> nn.Module:
    """One of 28 layers in bfloat16, with weights wide enough that rounding grows from layer to layer."""
    mx.random.seed(0)
    network = small_network(qwen3, num_hidden_layers=28, vocab_size=8192, tie_word_embeddings=True)
    network.update(tree_map_with_path(lambda _, value: 3 * value if value.ndim > 1 else value, network.parameters()))
    network.set_dtype(mx.bfloat16)
    return network


def test_a_model_that_rounds_few_tokens_otherwise_still_ignores_padding(
    deep_network: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = nn.Linear.__call__

    def round_few(self: nn.Linear, x: mx.array) -> mx.array:
        if x.size > FEW_TOKENS * x.shape[-1]:
            return plain(self, x)
        return (HALF_UNIT * (x.astype(mx.float32) @ self["weight"].T.astype(mx.float32))).astype(x.dtype)

    monkeypatch.setattr(nn.Linear, "__call__", round_few)
    assert supports_padding(deep_network)


def test_a_model_that_sees_padding_does_not_ignore_it(deep_network: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    attend = mx.fast.scaled_dot_product_attention

    def attend_to_all(*arrays: mx.array, scale: float, **_: object) -> mx.array:
        return attend(*arrays, scale=scale)

    monkeypatch.setattr(mx.fast, "scaled_dot_product_attention", attend_to_all)
    assert not supports_padding(deep_network)


# Windows and recurrent states.

PADDED = ("falcon_h1", "gemma3_text", "gpt_oss", "mamba2", "qwen3_next")
"""Architectures whose code knows where each row ends."""


@pytest.mark.parametrize("model_type", PADDED)
def test_windows_and_states_that_end_with_their_row_are_padded(model_type: str) -> None:
    assert supports_padding(special_network(model_type))


@pytest.mark.parametrize("model_type", ["mamba", "nemotron_h", "recurrent_gemma"])
def test_a_model_whose_states_go_on_or_are_lost_in_padding_is_not_padded(model_type: str) -> None:
    assert not supports_padding(special_network(model_type))


class Sum(nn.Module):
    """A network whose state is the sum of its tokens, and hardly moves the logits.

    Args:
        faded: What a token of padding leaves of the state.
        loses: Whether the tokens before padding are lost.
    """

    def __init__(self, faded: float = 1.0, *, loses: bool = False) -> None:
        super().__init__()
        self.layers: list[nn.Module] = []
        mx.random.seed(0)
        self.embeddings = mx.random.normal((100, 64))
        self._faded, self._loses = faded, loses

    def make_cache(self) -> list[ArraysCache]:
        return [ArraysCache(1)]

    def __call__(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        rows, count = tokens.shape
        mask = cache[0].make_mask(count)
        mask = mx.ones((rows, count), mx.bool_) if mask is None else mask
        before = cache[0][0] if cache[0][0] is not None else mx.zeros((rows, 64))
        state, sums = before, []
        for place in range(count):
            longer = state + self.embeddings[tokens[:, place]]
            state = mx.where(mask[:, place, None], longer, self._faded * state)
            sums.append(state)
        cache[0][0] = mx.where(mask.all(axis=1, keepdims=True), state, before) if self._loses else state
        cache[0].advance(count)
        return (self.embeddings[tokens] + mx.stack(sums, axis=1) / 1000) @ self.embeddings.T


@pytest.mark.parametrize(
    ("network", "is_padded"),
    [(Sum(), True), (Sum(faded=0.999), False), (Sum(loses=True), False)],
    ids=["exact", "fading", "lost"],
)
def test_a_state_is_compared_where_it_hardly_moves_the_logits(network: Sum, is_padded: bool) -> None:
    assert supports_padding(network) == is_padded


def test_a_model_with_caches_of_an_unknown_kind_is_not_padded() -> None:
    class OwnCache(ArraysCache):
        pass

    network = Sum()
    network.make_cache = lambda: [OwnCache(1)]  # pyrefly: ignore[bad-assignment]
    assert not supports_padding(network)


@pytest.mark.parametrize("at_once", [40, 512], ids=["in parts", "whole chunks"])
@pytest.mark.parametrize("model_type", PADDED)
def test_rows_of_any_lengths_get_the_logits_that_they_get_alone(
    model_type: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = special_network(model_type)
    monkeypatch.setattr(row_group, "MAX_CPU_TOKENS", at_once)
    drawn = random.Random(model_type)
    for size in (4, 33, 64):
        prompts = [[drawn.randrange(100) for _ in range(drawn.choice((2, 7, 34, 65, 90)))] for _ in range(4)]
        alone = mx.concatenate([logits_after(network, [prompt], 200) for prompt in prompts])
        assert differ_by_rounding(logits_after(network, prompts, size), alone, EXACT)


def test_rows_of_one_length_leave_no_mask_to_later_steps() -> None:
    network = Sum()
    caches = merge_caches([make_prompt_cache(network) for _ in range(2)])
    [cache] = compute_chunks(network, caches, [[1, 2], [3, 4]])
    assert cache.make_mask(1) is None


def logits_after(network: Any, prompts: Sequence[list[int]], size: int) -> mx.array:
    """Return the logits [B, V] after prompts, of which `size` tokens are computed at a time."""
    caches = merge_caches([make_prompt_cache(network) for _ in prompts])
    for start in range(0, max(map(len, prompts)) - 1, size):
        caches = compute_chunks(network, caches, [prompt[:-1][start : start + size] for prompt in prompts])
    return network(mx.array([prompt[-1:] for prompt in prompts]), cache=caches)[:, -1]
