"""Padded caches: mlx-lm's own cache for batches is the reference, and what differs from it is said here."""

import random
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models.base import create_attention_mask
from mlx_lm.models.cache import BatchKVCache, KVCache

from lmwire_worker.generation.padded_cache import ROOM, PaddedKVCache

HEADS, WIDTH = 2, 4


def drawn(rows: int, tokens: int) -> mx.array:
    return mx.random.normal((rows, HEADS, tokens, WIDTH))


def single(tokens: int) -> KVCache:
    cache = KVCache()
    if tokens:
        cache.update_and_fetch(drawn(1, tokens), drawn(1, tokens))
    return cache


def same_rows(padded: PaddedKVCache, reference: BatchKVCache, rows: int) -> None:
    offsets = mx.broadcast_to(mx.array(padded.offset), (rows,))
    assert offsets.tolist() == padded.lengths.tolist() == reference.offset.tolist()
    for row in range(rows):
        own, expected = padded.extract(row), reference.extract(row)
        assert own.offset == expected.offset
        for name in ("keys", "values"):
            one, other = getattr(own, name), getattr(expected, name)
            assert mx.array_equal(one[..., : own.offset, :], other[..., : own.offset, :])


@pytest.mark.parametrize("seed", range(8))
def test_rows_keep_the_tokens_that_they_keep_in_the_cache_of_mlx_lm(seed: int) -> None:
    chance = random.Random(seed)
    mx.random.seed(seed)
    parts = [single(chance.randint(1, 300)) for _ in range(3)]
    padded, reference, rows = PaddedKVCache.merge(parts), BatchKVCache.merge(parts), 3

    def step() -> int:
        keys, values = drawn(rows, 1), drawn(rows, 1)
        for own, expected in zip(
            padded.update_and_fetch(keys, values), reference.update_and_fetch(keys, values), strict=True
        ):
            assert own.shape == expected.shape
        return rows

    def chunk() -> int:
        lengths = [chance.randint(1, 40) for _ in range(rows)]
        keys, values = drawn(rows, 42), drawn(rows, 42)
        for cache, width in ((padded, max(lengths) + chance.randint(0, 2)), (reference, max(lengths))):
            cache.prepare(lengths=lengths, right_padding=[width - length for length in lengths])
            cache.update_and_fetch(keys[:, :, :width], values[:, :, :width])
            cache.finalize()  # also without the columns that no row needs
        return rows

    def join() -> int:
        more = [single(chance.randint(0, 1) * chance.randint(1, 400)) for _ in range(2)]
        padded.extend(PaddedKVCache.merge(more))
        reference.extend(BatchKVCache.merge(more))
        return rows + 2

    def leave() -> int:
        kept = sorted(chance.sample(range(rows), chance.randint(1, rows)))
        padded.filter(kept)
        reference.filter(kept)
        return len(kept)

    def trim() -> int:
        assert padded.trim(1) == reference.trim(1) == 1
        return rows

    actions: list[Callable[[], int]] = [step, step, chunk, join, leave, trim]
    for _ in range(12):
        rows = chance.choice(actions)()
        if mx.all(reference.offset > 0).item():
            same_rows(padded, reference, rows)


def test_a_padded_row_attends_to_none_of_its_padding() -> None:
    parts = [single(3), single(5)]
    masks = [kind.merge(parts).make_mask(2, return_array=True) for kind in (PaddedKVCache, BatchKVCache)]
    assert masks[0].tolist() == masks[1].tolist()


@pytest.mark.parametrize("tokens", [1, 4])
def test_rows_of_one_length_need_no_mask_and_have_one_position(tokens: int) -> None:
    cache = PaddedKVCache.merge([single(5), single(5)])
    caches: Any = [cache, single(5)]
    assert cache.offset == 5
    masks = [create_attention_mask(mx.zeros((2, tokens, 1)), each) for each in caches]
    assert masks[0] == masks[1]


def test_all_layers_use_one_array_of_positions() -> None:
    layers = [PaddedKVCache.merge([single(3), single(5)]) for _ in range(2)]
    for layer in layers:
        layer.update_and_fetch(drawn(2, 1), drawn(2, 1))
    assert layers[0].offset is layers[1].offset


def test_the_sizes_of_arrays_come_again() -> None:
    """MLX takes freed memory again for an array of the same size."""
    cache = PaddedKVCache.merge([single(300), single(5)])
    columns = set()
    for _ in range(3):
        cache.extend(PaddedKVCache.merge([single(290)]))
        cache.update_and_fetch(drawn(len(cache.padding), 200), drawn(len(cache.padding), 200))
        assert cache.keys is not None
        columns.add(cache.keys.shape[2] % ROOM)
    assert columns == {0}


def test_the_first_rows_stay_without_a_copy() -> None:
    cache = PaddedKVCache.merge([single(3), single(5), single(4)])
    cache.truncate(2)
    assert cache.keys is not None
    assert (len(cache.keys), cache.padding, cache.lengths.tolist()) == (2, (2, 0), [3, 5])
