"""Caches whose rows grow by different numbers of tokens in a step.

A step appends as many columns to every row as its longest row has new tokens. A column without a token of its row is
a hole: the mask hides it, and positions do not count it. So a step copies nothing. Once there are many holes, or rows
come and go, the tokens move together, and the caches get their padded form again.
"""

from collections.abc import Sequence
from typing import Any, Final

import mlx.core as mx

from ..caches import to_batched
from ..padded_cache import PaddedKVCache, with_room

MAX_HOLES: Final = 256
"""Columns without a token that the longest row may have. A cache makes room for as many at a time."""


class Columns:
    """The columns that hold each row's tokens: the same for all layers.

    Args:
        cache: The cache of one layer.
    """

    def __init__(self, cache: PaddedKVCache) -> None:
        self.count = cache.size()
        """Number of columns."""
        self._taken = mx.arange(self.count) >= cache.left_padding[:, None]
        """True for a column with a token [B, count]."""
        self._lengths = cache.lengths
        """Number of tokens of each row [B]."""
        self.look_ahead(0)

    def look_ahead(self, tokens: int) -> None:
        """Let the next tokens of each row follow so many that this step has appended, of which it may keep a part."""
        self.end = self.count + tokens
        """Number of columns before the next tokens."""
        self.offsets = self._lengths + tokens if tokens else self._lengths
        """The position of each row's next token [B]."""

    def advance(self, counts: list[int]) -> None:
        """Keep the first tokens of each row that a step has computed.

        Args:
            counts: Number of tokens of each row to keep.
        """
        kept = mx.array(counts)
        width = max(counts)
        self._taken = mx.concatenate([self._taken, mx.arange(width) < kept[:, None]], axis=1)
        self._lengths = self._lengths + kept
        self.count += width
        self.look_ahead(0)

    def mask(self, width: int, window: int | None) -> mx.array:
        """Return which columns each of the next tokens attends to [B, 1, width, end + width].

        Args:
            width: Number of next tokens of each row.
            window: Number of newest tokens to which a token attends, itself included; None for all.
        """
        rows, ahead = len(self._taken), self.end - self.count
        past = mx.broadcast_to(self._taken[:, None], (rows, width, self.count))
        among = mx.broadcast_to(mx.tri(width, ahead + width, ahead, dtype=mx.bool_), (rows, width, ahead + width))
        mask = mx.concatenate([past, among], axis=2)
        if window is not None:
            new = mx.arange(ahead + width) + self._lengths[:, None]
            positions = mx.concatenate([mx.cumsum(self._taken, axis=1) - 1, new], axis=1)
            mask = mask & (positions[:, None] > new[:, ahead:, None] - window)
        return mask[:, None]

    def order(self, length: int) -> mx.array:
        """Return the columns that hold the tokens of each row, on the right [B, length].

        Args:
            length: Number of tokens of the longest row.
        """
        columns = mx.arange(self.count)
        return mx.argsort(columns + self.count * self._taken, axis=1)[:, self.count - length :]


class UnevenKVCache:
    """One layer's cache in a batch whose rows grow unevenly. Models use it like mlx-lm's.

    Args:
        cache: The batched cache, whose arrays this object takes over.
        columns: Where the tokens are, for all layers.
    """

    def __init__(self, cache: PaddedKVCache, columns: Columns) -> None:
        self.keys: mx.array | None = cache.keys
        self.values: mx.array | None = cache.values
        self._columns = columns

    @property
    def offset(self) -> mx.array:
        """Position of each row's next token [B]."""
        return self._columns.offsets

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Append the keys and values of next tokens [B, heads, T, width], and return all of them."""
        start = self._columns.end
        end = start + keys.shape[2]
        every = with_room(self.keys, keys, start, end), with_room(self.values, values, start, end)
        self.keys, self.values = every
        for array, new in zip(every, (keys, values), strict=True):
            array[..., start:end, :] = new
        return every[0][..., :end, :], every[1][..., :end, :]

    def make_mask(self, N: int, window_size: int | None = None, **_: Any) -> mx.array:  # noqa: N803
        """Return the mask of the next N tokens; see `Columns.mask`."""
        return self._columns.mask(N, window_size)

    @property
    def state(self) -> Any:
        """The arrays, for `evaluate`."""
        return self.keys, self.values

    @property
    def nbytes(self) -> int:
        """Size of the arrays, in bytes."""
        return self.keys.nbytes + self.values.nbytes if self.keys is not None and self.values is not None else 0


def to_uneven(caches: Sequence[Any]) -> tuple[list[UnevenKVCache], Columns]:
    """Return the caches of all layers in their uneven form, and where the tokens are.

    Args:
        caches: Plain KV caches, which this function takes over.
    """
    batched = [to_batched(cache) for cache in caches]
    columns = Columns(batched[0])
    return [UnevenKVCache(cache, columns) for cache in batched], columns


def to_even(caches: Sequence[UnevenKVCache], columns: Columns, lengths: Sequence[int]) -> list[PaddedKVCache]:
    """Return the caches in their batched form, without holes.

    Args:
        caches: The uneven caches, which this function takes over.
        columns: Where the tokens are.
        lengths: Number of tokens of each row.
    """
    length = max(lengths)
    order = columns.order(length)[:, None, :, None]
    padding = [length - own for own in lengths]
    even: list[PaddedKVCache] = []
    for cache in caches:
        assert cache.keys is not None and cache.values is not None
        keys, values = (mx.take_along_axis(array, order, axis=2) for array in (cache.keys, cache.values))
        even.append(PaddedKVCache(padding, keys, values, length))
    return even
