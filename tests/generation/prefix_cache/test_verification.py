"""A check takes rounding for what it is, and another prompt's cache for another's."""

from typing import Any

import mlx.core as mx
import pytest
from mlx import nn
from mlx.utils import tree_map
from mlx_lm.models.cache import make_prompt_cache

from lmwire_worker.generation.cache_manager import logits_match
from lmwire_worker.generation.language_model import open_shared_weights
from lmwire_worker.models.resolve import find_folder

pytestmark = pytest.mark.slow

PROMPT = list(b"Once upon a time there was a little dog who lived in a house near the sea.")
OTHER = list(b"What is your name? My name is Tom, and I like to read about the sun.")


def computed(network: nn.Module, prompt: list[int], dtype: mx.Dtype) -> list[Any]:
    cache = make_prompt_cache(network)
    network(mx.array([prompt]), cache=cache)
    for layer in cache:
        layer.state = tree_map(lambda part: part.astype(dtype) if isinstance(part, mx.array) else part, layer.state)
    return cache


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16, mx.float16])
def test_a_trained_models_rounding_passes_and_another_prompts_cache_does_not(dtype: mx.Dtype) -> None:
    base = open_shared_weights(find_folder("builtin:tiny", lambda *_: None), trust_remote_code=False)
    exact, rounded = base.new_network(), base.new_network()
    rounded.set_dtype(dtype)
    cold = computed(rounded, PROMPT, dtype)
    assert logits_match(rounded, PROMPT[-1], computed(exact, PROMPT, dtype), cold)
    assert not logits_match(rounded, PROMPT[-1], computed(exact, OTHER, dtype), cold)
