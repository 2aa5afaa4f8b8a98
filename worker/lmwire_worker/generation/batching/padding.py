"""Padding of prompts: shapes for devices that compile each new one, and whether a model ignores padding."""

from typing import Final

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import ArraysCache, KVCache, RotatingKVCache, make_prompt_cache

from ...models.cuda import uses_cuda
from ...models.logit_comparison import differ_by_rounding
from ..caches import flatten_caches, merge_caches
from .row_group import compute_chunks

ROW_STEPS_PER_OCTAVE: Final = 2
LENGTH_STEPS_PER_OCTAVE: Final = 4
MIN_LENGTH_STEP: Final = 16
"""Minimum difference between two rounded lengths, in tokens."""
MAX_ROUNDED_TOKENS: Final = 4096
"""Maximum tokens of a rounded chunk, over all rows. Beyond it, padding takes longer than compiling a new shape."""
TRIAL_LENGTHS: Final = (3, 11, 6)
TRIAL_TOKENS: Final = 100
"""Every vocabulary has at least this many tokens."""


# Shapes, for devices that compile kernels for each new one.


def compiles_each_shape() -> bool:
    """Return whether the device compiles kernels for each shape. On CUDA, cuDNN and cuBLAS plan for tens of ms."""
    return uses_cuda()


def round_shape(rows: int, length: int, cached_tokens: int = 0) -> tuple[int, int]:
    """Return the shape (rows, tokens of each) to which a chunk is padded.

    Args:
        rows: Rows of the chunk.
        length: Tokens of the longest row.
        cached_tokens: Maximum tokens in the rows' caches. Added rows take the same memory meanwhile.
    """
    more_rows, longer = (
        _round_up(rows, ROW_STEPS_PER_OCTAVE, 1),
        _round_up(length, LENGTH_STEPS_PER_OCTAVE, MIN_LENGTH_STEP),
    )
    if more_rows * (cached_tokens + longer) <= MAX_ROUNDED_TOKENS:
        return more_rows, longer
    return (rows, longer) if rows * longer <= MAX_ROUNDED_TOKENS else (rows, length)


def _round_up(count: int, in_octave: int, least: int) -> int:
    """Return the count rounded up to a multiple of a step.

    Args:
        count: The number to round.
        in_octave: Number of steps between a power of two and the next.
        least: Minimum step.
    """
    step = max(least, (1 << (count - 1).bit_length()) // (2 * in_octave))
    return -(-count // step) * step


# Whether a model computes padded prompts correctly.


_KINDS: Final = (KVCache, RotatingKVCache, ArraysCache)
"""The caches whose batched forms take padding after a row's tokens. Those of mlx-vlm with other classes do not."""
_FOLLOWING: Final = 16
"""Tokens of padding over which a recurrent state must not go on."""
_MAX_DEVIATION: Final = 0.5
"""Maximum deviation of a recurrent state that counts as rounding. One that is lost or goes on moves by 1 or more."""
_MAX_DRIFT: Final = 1e-3
"""The same for a row without a token in a chunk. Nothing rounds there, and a state that fades does so slowly."""


def supports_padding(model: nn.Module) -> bool:
    """Return whether prompts of different lengths can be prefilled together, by a trial with three prompts.

    A model's own code may ignore masks, or the ends of the rows, beyond which a recurrent state must not go on.
    The trial compares logits, not tokens: on a GPU, a batch is rounded differently from a single row, and rounding
    decides between tokens of nearly equal probability. Visible padding moves the logits as much as another prompt does.
    """
    if not all(type(cache) in _KINDS for cache in flatten_caches(make_prompt_cache(model))):
        return False
    prompts = [[(7 * length + index) % TRIAL_TOKENS for index in range(length)] for length in TRIAL_LENGTHS]
    together = _next_logits(model, prompts)
    alone = mx.concatenate([_next_logits(model, [prompt]) for prompt in prompts])
    return differ_by_rounding(together, alone) and _keeps_states(model)


def _next_logits(model: nn.Module, prompts: list[list[int]]) -> mx.array:
    """Return the logits [B, V] after each prompt, computed together."""
    caches = merge_caches([make_prompt_cache(model) for _ in prompts])
    caches = compute_chunks(model, caches, [prompt[:-1] for prompt in prompts])
    last = mx.array([prompt[-1:] for prompt in prompts])
    logits = model(last, cache=caches)[:, -1, :]
    mx.eval(logits)  # ranks exchange values in the order of evaluation, which a graph of several calls would not fix
    return logits


def _keeps_states(model: nn.Module) -> bool:
    """Return whether the recurrent states of a row stay as they are while only another row has tokens.

    One that is lost moves the logits of a short trial no more than rounding does, where its layers are few.
    """
    if not any(isinstance(cache, ArraysCache) for cache in flatten_caches(make_prompt_cache(model))):
        return True
    short, long = [1, 2, 3], [4] * _FOLLOWING
    states, padded = _first_states(model, [short, short]), _first_states(model, [short, long])
    waiting = _first_states(model, [short, short], [[], long])
    return all(
        differ_by_rounding(followed, state, _MAX_DEVIATION) and differ_by_rounding(later, state, _MAX_DRIFT)
        for state, followed, later in zip(states, padded, waiting, strict=True)
    )


def _first_states(model: nn.Module, *turns: list[list[int]]) -> list[mx.array]:
    """Return the recurrent states of the first row, each as one row of numbers.

    Args:
        model: The network.
        turns: The tokens of each row that are computed together, for each chunk.
    """
    caches = merge_caches([make_prompt_cache(model) for _ in turns[0]])
    for chunks in turns:
        caches = compute_chunks(model, caches, chunks)
    recurrent = [cache for cache in flatten_caches(caches) if isinstance(cache, ArraysCache)]
    return [state[:1].flatten() for cache in recurrent for state in cache.cache if state is not None]
