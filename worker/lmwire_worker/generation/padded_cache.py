"""The keys and values of rows in a batch: the tokens of each row stand on the right, after its padding.

Models use this cache as mlx-lm's own for batches. It differs in three points, which count on a GPU:

- The process knows the padding, which is the same for all layers. So no layer asks the device for it when rows leave,
  which would wait for a step in each layer, and the positions of the next tokens are made once for all layers.
- Without padding it works as mlx-lm's cache of a single row does. Attention needs no mask then, and MLX has fused
  kernels only without one.
- Its arrays have few sizes. MLX takes freed memory again only for an array of nearly the same size, and asks the driver
  for any other, which takes long on CUDA.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Self

import mlx.core as mx
from mlx_lm.models.cache import BatchKVCache, KVCache, create_attention_mask, dynamic_roll

ROOM: Final = 256
"""The columns of a new array are a multiple of this number."""
_PADDINGS: Final = 64
"""Number of paddings whose arrays are kept. A step uses one for each length bucket."""


class PaddedKVCache(BatchKVCache):
    """One layer's cache.

    Args:
        padding: Columns of padding before the tokens of each row.
        keys: The keys [B, heads, columns, width]; None for none.
        values: The values, of the shape of the keys, perhaps with another width.
        size: Number of columns in use, padding included.
    """

    def __init__(
        self, padding: Sequence[int], keys: mx.array | None = None, values: mx.array | None = None, size: int = 0
    ) -> None:
        self.keys, self.values = keys, values
        self._announced: Sequence[int] = ()
        self._place(padding, size)

    def _place(self, padding: Sequence[int], size: int) -> None:
        """Note the columns of padding of each row, and how many columns are in use."""
        self._padding = _padding_of(tuple(padding))
        self.left_padding = self._padding.array
        self._resize(size)

    def _resize(self, size: int) -> None:
        self._idx = size  # some models read it by this name
        self.offset: Any = self._padding.lengths(size) if self._padding.is_any else size

    @property
    def padding(self) -> tuple[int, ...]:
        """Columns of padding before the tokens of each row."""
        return self._padding.columns

    @property
    def lengths(self) -> mx.array:
        """Number of tokens of each row [B]."""
        return self._padding.lengths(self._idx)

    def make_mask(self, N: int, return_array: bool = False, **kwargs: Any) -> Any:  # noqa: N803
        """Return the mask of the next N tokens, as mlx-lm's models ask for it."""
        if self._padding.is_any:
            return super().make_mask(N, return_array, **kwargs)
        return create_attention_mask(N, self._idx, return_array, kwargs.get("window_size"))

    # Columns come and go.

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Append the keys and values of next tokens [B, heads, T, width], and return all of them."""
        start, end = self._idx, self._idx + keys.shape[2]
        every = with_room(self.keys, keys, start, end), with_room(self.values, values, start, end)
        self.keys, self.values = every
        for array, new in zip(every, (keys, values), strict=True):
            array[..., start:end, :] = new
        self._resize(end)
        return every[0][..., :end, :], every[1][..., :end, :]

    def trim(self, n: int) -> int:
        """Remove up to `n` columns on the right, and return how many these were."""
        n = min(self._idx, n)
        self._resize(self._idx - n)
        return n

    def prepare(
        self, *, left_padding: Any = None, lengths: Any = None, right_padding: Sequence[int] | None = None
    ) -> None:
        """Announce how many columns of padding follow the next tokens of each row. The other arguments do nothing."""
        self._announced = right_padding or ()

    def finalize(self) -> None:
        """Move the announced padding to the left of the tokens, without the columns that are padding in all rows."""
        announced, self._announced = self._announced, ()
        if not any(announced):
            return
        least = self.trim(min(announced))
        announced = [own - least for own in announced]
        shifts = _as_array(tuple(announced))[:, None]
        self.keys, self.values = (dynamic_roll(array, shifts, axis=2) for array in (self.keys, self.values))
        self._place([own + more for own, more in zip(self.padding, announced, strict=True)], self._idx)

    # Rows come and go.

    def filter(self, batch_indices: Sequence[int]) -> None:
        """Keep the rows with these indices, and no column that is padding in all of them."""
        padding = [self.padding[index] for index in batch_indices]
        least = min(padding)
        if self.keys is not None and self.values is not None:
            rows = _as_array(tuple(batch_indices))
            self.keys, self.values = (array[..., least:, :][rows] for array in (self.keys, self.values))
        self._place([own - least for own in padding], self._idx - least)

    def truncate(self, rows: int) -> None:
        """Keep the first `rows` rows. Copies nothing, so that the memory of the others stays in use."""
        assert self.keys is not None and self.values is not None
        self.keys, self.values = self.keys[:rows], self.values[:rows]
        self._place(self.padding[:rows], self._idx)

    def extend(self, other: "PaddedKVCache") -> None:
        """Append the rows of another cache."""
        self._take([self, other])

    def extract(self, idx: int) -> KVCache:
        """Return a copy of a row, as a cache of its own."""
        assert self.keys is not None and self.values is not None
        start = self.padding[idx]
        row = KVCache()
        row.keys, row.values = (
            mx.contiguous(array[idx : idx + 1, :, start : self._idx]) for array in (self.keys, self.values)
        )
        row.offset = self._idx - start
        return row

    @classmethod
    def merge(cls, caches: Sequence[KVCache]) -> Self:
        """Return the caches of single rows as one."""
        merged = cls([0])
        merged._take([cls([0], cache.keys, cache.values, cache.offset) for cache in caches])
        return merged

    def _take(self, caches: "Sequence[PaddedKVCache]") -> None:
        """Become the rows of some caches."""
        size = max(cache._idx for cache in caches)
        padding = [own + size - cache._idx for cache in caches for own in cache.padding]
        if any(cache.keys is not None for cache in caches):
            self.keys, self.values = (
                _stack([(getattr(cache, name), cache._idx, len(cache.padding)) for cache in caches], size)
                for name in ("keys", "values")
            )
        self._place(padding, size)


def with_room(array: mx.array | None, new: mx.array, start: int, end: int) -> mx.array:
    """Return an array that begins with another one's first columns, and has room for more.

    Args:
        array: The other array; None for none.
        new: An array of the form of the columns that follow.
        start: Number of the first columns.
        end: Number of columns that must have room.
    """
    if array is not None and array.shape[2] >= end:
        return array
    room = mx.zeros((*new.shape[:2], rounded(end) - start, new.shape[3]), new.dtype)
    return room if array is None else mx.concatenate([array[..., :start, :], room], axis=2)


def _stack(parts: Sequence[tuple[mx.array | None, int, int]], size: int) -> mx.array:
    """Return the rows of arrays as one array, each with its columns on the right of the first `size`.

    Args:
        parts: Of each array, the columns in use and the rows. None stands for rows without columns.
        size: Number of columns of the longest.
    """
    form = next(array for array, _, _ in parts if array is not None)
    rows = sum(count for _, _, count in parts)
    whole = mx.zeros((rows, form.shape[1], rounded(size), form.shape[3]), form.dtype)
    first = 0
    for array, used, count in parts:
        if array is not None:
            whole[first : first + count, :, size - used : size] = array[..., :used, :]
        first += count
    return whole


def rounded(columns: int) -> int:
    """Return a number of columns, rounded up to what arrays have."""
    return -(-columns // ROOM) * ROOM


class _Padding:
    """The padding of the rows of a batch, and the arrays that depend on it.

    Args:
        columns: Columns of padding before the tokens of each row.
    """

    def __init__(self, columns: tuple[int, ...]) -> None:
        self.columns = columns
        self.is_any = any(columns)
        self.array = mx.array(columns)
        self._size = -1
        self._lengths = self.array

    def lengths(self, size: int) -> mx.array:
        """Return the number of tokens of each row [B], where `size` columns are in use."""
        if size != self._size:
            self._size = size
            self._lengths = mx.array([size - own for own in self.columns])
        return self._lengths

    def __deepcopy__(self, _: Any) -> "_Padding":
        return self


@lru_cache(_PADDINGS)
def _padding_of(columns: tuple[int, ...]) -> _Padding:
    """Return the same object for all layers, whose rows have the same padding."""
    return _Padding(columns)


@lru_cache(1)
def _as_array(numbers: tuple[int, ...]) -> mx.array:
    """Return numbers of rows or columns as an array, which all layers use in turn."""
    return mx.array(numbers)
