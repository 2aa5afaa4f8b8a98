"""Compute a chunk of each prompt: how much at once, in which shape, and with how much padding."""

import copy
from typing import Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache

from .caches import append_empty_rows, evaluate, merge_caches, name_special_caches, to_batched, truncate_rows

MAX_CHUNK_TOKENS: Final = 2048
"""Maximum tokens of one prompt in one pass."""
MAX_CPU_TOKENS: Final = 512
"""Maximum tokens computed at once on a CPU, over all prompts: the activations of more exceed its caches."""
MAX_SPARE_BYTES: Final = 64 << 20
"""Freed memory that MLX may keep after a chunk, in bytes. On a CPU, short prompts are slower if the system has to give
the memory anew. The chunks of large models use more, and return all of it."""
ROW_STEPS_PER_OCTAVE: Final = 2
LENGTH_STEPS_PER_OCTAVE: Final = 4
MIN_LENGTH_STEP: Final = 16
"""Minimum difference between two rounded lengths, in tokens."""
MAX_ROUNDED_TOKENS: Final = 4096
"""Maximum tokens of a rounded chunk, over all rows. Beyond it, padding takes longer than compiling a new shape."""
TRIAL_LENGTHS: Final = (3, 11, 6)
TRIAL_TOKENS: Final = 100
"""Every vocabulary has at least this many tokens."""
MAX_LOGIT_DEVIATION: Final = 0.2
"""Maximum deviation of a logit by rounding, in standard deviations of the logits. Visible padding causes more."""


def compute_chunks(
    model: nn.Module, caches: list[Any], chunks: list[list[int]], shape: tuple[int, int] | None = None
) -> list[Any]:
    """Compute a chunk of each prompt, and return the caches with it.

    Padding follows a chunk, so that the chunk's tokens do not attend to it. Afterwards it precedes the row's tokens,
    or is removed where all rows have it.

    Args:
        model: The network.
        caches: The caches of the rows, which this function takes over. Where chunks differ in length or a shape is
            given, they are plain KV caches.
        chunks: The tokens of each row.
        shape: Rows and tokens of each that the model computes, no fewer than there are; None for as many as there are.
    """
    lengths = [len(chunk) for chunk in chunks]
    longest = max(lengths)
    rows, width = shape or (len(chunks), longest)
    added = rows - len(chunks)
    if added:
        caches = [append_empty_rows(to_batched(cache), added) for cache in caches]
    lengths += [longest] * added
    padding = [longest - length for length in lengths]
    if any(padding):
        for cache in caches:
            cache.prepare(lengths=lengths, right_padding=padding)
    tokens = mx.array([chunk + [0] * (width - len(chunk)) for chunk in [*chunks, *[[]] * added]])
    at_once = width if shape else _tokens_at_once(rows)
    for start in range(0, width, at_once):
        model(tokens[:, start : start + at_once], cache=caches)
        if start + at_once < width:
            evaluate(caches)
    for cache in caches:
        if width > longest:
            cache.trim(width - longest)
        if any(padding):
            cache.finalize()
        if added:
            truncate_rows(cache, len(chunks))
    evaluate(caches)
    if not shape and mx.get_cache_memory() > MAX_SPARE_BYTES:  # rounded shapes take the same memory again
        mx.clear_cache()
    return caches


def prefill(model: nn.Module, tokens: list[int], cache: list[Any] | None = None, cached_tokens: int = 0) -> list[Any]:
    """Return a cache with all tokens but the last. The last one is computed on a copy, to detect errors.

    Args:
        model: The network.
        tokens: The tokens.
        cache: The cache of the first `cached_tokens` tokens, which this function takes over; None for an empty one.
        cached_tokens: Number of tokens in the cache.
    """
    cache = cache or make_prompt_cache(model)
    for start in range(cached_tokens, len(tokens) - 1, MAX_CHUNK_TOKENS):
        model(mx.array([tokens[start : min(start + MAX_CHUNK_TOKENS, len(tokens) - 1)]]), cache=cache)
        evaluate(cache)
    mx.eval(model(mx.array([tokens[-1:]]), cache=copy.deepcopy(cache)))
    return cache


def _tokens_at_once(prompts: int) -> int:
    """Return the maximum tokens of each of `prompts` prompts that are computed at once."""
    return max(1, MAX_CPU_TOKENS // prompts) if mx.default_device() == mx.cpu else MAX_CHUNK_TOKENS


# Shapes, for devices that compile kernels for each new one.


def compiles_each_shape() -> bool:
    """Return whether the device compiles kernels for each shape. On CUDA, cuDNN and cuBLAS plan for tens of ms."""
    return mx.default_device() == mx.gpu and mx.cuda.is_available()


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


def supports_padding(model: nn.Module) -> bool:
    """Return whether prompts of different lengths can be prefilled together, by a trial with three prompts.

    The batched form of a recurrent cache does not hide padding, and a model's own code may ignore masks.
    The trial compares logits, not tokens: on a GPU, a batch is rounded differently from a single row, and rounding
    decides between tokens of nearly equal probability.
    """
    if name_special_caches(make_prompt_cache(model)):
        return False
    prompts = [[(7 * length + index) % TRIAL_TOKENS for index in range(length)] for length in TRIAL_LENGTHS]
    together = _next_logits(model, prompts)
    alone = mx.concatenate([_next_logits(model, [prompt]) for prompt in prompts])
    difference = mx.abs(together - alone).max(axis=-1)
    return bool(mx.all(difference < MAX_LOGIT_DEVIATION * mx.std(alone, axis=-1)).item())


def _next_logits(model: nn.Module, prompts: list[list[int]]) -> mx.array:
    """Return the logits [B, V] after each prompt, computed together."""
    caches = merge_caches([make_prompt_cache(model) for _ in prompts])
    caches = compute_chunks(model, caches, [prompt[:-1] for prompt in prompts])
    last = mx.array([prompt[-1:] for prompt in prompts])
    return model(last, cache=caches)[:, -1, :].astype(mx.float32)
