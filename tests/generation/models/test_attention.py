"""Attention without cuDNN's plans. Here MLX does not plan either, so both must give the same numbers."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models import gemma3_text, qwen3
from mlx_lm.models.cache import KVCache, make_prompt_cache

from lmwire_worker.models.attention import attend, replace_attention
from support.models.small_networks import small_network

mlx_attend: Callable[..., mx.array] = mx.fast.scaled_dot_product_attention
ROWS, HEADS, TOKENS, CONTEXT = 2, 8, 5, 17
MASKS: dict[str, Any] = {
    "none": None,
    "causal": "causal",
    "one for all": mx.random.uniform(shape=(TOKENS, CONTEXT)) > 0.3,
    "one a row": mx.random.uniform(shape=(ROWS, 1, TOKENS, CONTEXT)) > 0.3,
    "one a head": mx.random.uniform(shape=(ROWS, HEADS, TOKENS, CONTEXT)) > 0.3,
    "numbers to add": mx.random.normal((ROWS, 1, TOKENS, CONTEXT)),
}


def tensors(heads_of_keys: int, width: int, dtype: mx.Dtype) -> list[mx.array]:
    """Return queries, keys and values."""
    shapes = [(HEADS, TOKENS), (heads_of_keys, CONTEXT), (heads_of_keys, CONTEXT)]
    return [mx.random.normal((ROWS, *shape, width)).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("sinks", [False, True], ids=["", "sinks"])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("heads_of_keys", [HEADS, 2, 1])
@pytest.mark.parametrize("dtype", [mx.bfloat16, mx.float16, mx.float32], ids=str)
def test_the_numbers_are_those_of_mlx(dtype: mx.Dtype, heads_of_keys: int, mask: Any, sinks: bool) -> None:
    queries, keys, values = tensors(heads_of_keys, 32, dtype)
    if isinstance(mask, mx.array) and mask.dtype != mx.bool_:
        mask = mask.astype(dtype)
    options = {"scale": 0.2, "mask": mask, "sinks": mx.random.normal((HEADS,)).astype(dtype) if sinks else None}
    found = attend(queries, keys, values, **options)
    assert found.dtype == dtype
    assert mx.array_equal(found, mlx_attend(queries, keys, values, **options))


def test_values_may_be_wider_than_keys() -> None:
    queries, keys, _ = tensors(2, 16, mx.bfloat16)
    values = mx.random.normal((ROWS, 2, CONTEXT, 64)).astype(mx.bfloat16)
    options = {"scale": 0.25, "mask": "causal"}
    assert mx.array_equal(attend(queries, keys, values, **options), mlx_attend(queries, keys, values, **options))


NETWORKS: dict[str, Callable[[], Any]] = {
    "qwen3": lambda: small_network(qwen3, tie_word_embeddings=True),
    "windows": lambda: small_network(gemma3_text, sliding_window=8, sliding_window_pattern=2),
}


@pytest.mark.parametrize("padded", [False, True], ids=["alone", "padded"])
@pytest.mark.parametrize("build", NETWORKS.values(), ids=NETWORKS)
def test_a_model_computes_its_prompts_alike(
    build: Callable[[], Any], padded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build()
    model.set_dtype(mx.bfloat16)
    prompts = mx.random.randint(0, 100, (2, 12))
    logits: list[mx.array] = []
    for function in (mlx_attend, attend):
        monkeypatch.setattr(mx.fast, "scaled_dot_product_attention", function)
        cache: list[Any] = make_prompt_cache(model)
        if padded:
            cache = [type(layer).merge([filled(layer, 3), filled(layer, 5)]) for layer in cache]
        logits += [mx.concatenate([model(part, cache=cache) for part in mx.split(prompts, 2, axis=1)], axis=1)]
    plain, planless = logits
    assert mx.array_equal(planless, plain)


def filled(cache: Any, tokens: int) -> Any:
    """Return a cache of the same kind that holds `tokens` tokens."""
    new = KVCache() if isinstance(cache, KVCache) else type(cache)(max_size=8)
    numbers = (mx.arange(2 * tokens * 16).reshape(1, 2, tokens, 16) % 7).astype(mx.bfloat16)
    new.update_and_fetch(numbers, numbers)
    return new


def test_other_devices_keep_the_function_of_mlx() -> None:
    replace_attention()
    assert mx.fast.scaled_dot_product_attention is mlx_attend
