"""Uneven caches: where the tokens of each row are, what they attend to, and what remains without the holes."""

import random

import mlx.core as mx
import pytest
from mlx_lm.models.cache import KVCache

from lmwire_worker.generation.batching.uneven import Columns, to_even, to_uneven
from lmwire_worker.generation.padded_cache import PaddedKVCache

LENGTHS = (3, 5, 1)
STEPS = ([2, 1, 3], [1, 1, 1], [4, 2, 1])
"""Tokens of each row that each of the steps keeps."""
WIDTH = 4
"""Tokens of each row that a step computes."""


def numbered(rows: list[list[int]]) -> mx.array:
    """Return keys [B, 1, T, 2] that hold a number for each token."""
    return mx.broadcast_to(mx.array(rows, mx.float32)[:, None, :, None], (len(rows), 1, len(rows[0]), 2))


def single(start: int, length: int) -> KVCache:
    cache = KVCache()
    keys = numbered([[start + place for place in range(length)]])
    cache.update_and_fetch(keys, keys)
    return cache


def test_without_holes_each_row_has_the_tokens_that_it_kept() -> None:
    caches, columns = to_uneven([PaddedKVCache.merge([single(100 * row, size) for row, size in enumerate(LENGTHS)])])
    sizes = list(LENGTHS)
    for counts in STEPS:
        new = numbered([[100 * row + size + place for place in range(WIDTH)] for row, size in enumerate(sizes)])
        assert columns.offsets.tolist() == sizes
        caches[0].update_and_fetch(new, new)
        columns.advance(counts)
        sizes = [size + count for size, count in zip(sizes, counts, strict=True)]
    (even,) = to_even(caches, columns, sizes)
    for row, size in enumerate(sizes):
        keys = even.extract(row).keys
        assert keys is not None
        assert keys[0, 0, :, 0].tolist() == [100 * row + place for place in range(size)]
    assert (even.size(), even.offset.tolist()) == (max(sizes), sizes)


def test_a_cache_makes_room_for_any_number_of_columns() -> None:
    caches, _ = to_uneven([PaddedKVCache.merge([single(0, 2), single(9, 1)])])
    new = numbered([[*range(600)], [*range(600)]])
    keys, values = caches[0].update_and_fetch(new, new)
    assert keys.shape == values.shape == (2, 1, 602, 2)
    assert keys[0, 0, :3, 0].tolist() == [0, 1, 0]


@pytest.mark.parametrize("ahead", [0, 1, 3])
@pytest.mark.parametrize("window", [None, 1, 2, 5])
def test_a_token_attends_to_the_tokens_before_it_and_to_no_hole(window: int | None, ahead: int) -> None:
    """A draft model's next tokens follow those that it has already proposed in this step."""
    chance = random.Random(3)
    cache = PaddedKVCache([2, 0, 4])
    cache.update_and_fetch(numbered([[0] * 5] * 3), numbered([[0] * 5] * 3))
    columns = Columns(cache)
    positions: list[list[int | None]] = [[None, None, 0, 1, 2], [0, 1, 2, 3, 4], [None, None, None, None, 0]]
    """The position of the token in each column; None for a column without one."""
    for _ in range(4):
        counts = [chance.randint(1, WIDTH) for _ in range(3)]
        columns.advance(counts)
        for own, count in zip(positions, counts, strict=True):
            last = max(place for place in own if place is not None)
            own += [last + 1 + place if place < count else None for place in range(max(counts))]
    columns.look_ahead(ahead)
    mask = columns.mask(WIDTH, window)
    assert mask.shape == (3, 1, WIDTH, len(positions[0]) + ahead + WIDTH)
    for row, own in enumerate(positions):
        first = 1 + max(place for place in own if place is not None)
        every = [*own, *range(first, first + ahead + WIDTH)]
        assert columns.offsets[row].item() == first + ahead
        for new in range(WIDTH):
            place = first + ahead + new
            seen = [other is not None and other <= place and place - other < (window or 1000) for other in every]
            assert mask[row, 0, new].tolist() == seen
