"""Find the largest values of each row with little sorting."""

import math
from typing import Any

import numpy as np

Array = Any
"""An array of `xp`, which is `mlx.core` or `numpy`."""


def topk(values: Array, count: int, xp: Any) -> Array:
    """Return the `count` largest values of each row, descending [R, count].

    Args:
        values: The values [R, V].
        count: Number of values to return.
        xp: `mlx.core` or `numpy`.
    """
    if count < values.shape[1]:
        values = values[_index(values, xp), _candidates(values, count, xp)]
    return xp.sort(values, axis=-1)[:, ::-1][:, :count]


def topk_ids(values: Array, count: int, xp: Any) -> tuple[Array, Array]:
    """Return the ids and the `count` largest values of each row, descending [R, count]; equal values by id.

    Args:
        values: The values [R, V].
        count: Number of values to return.
        xp: `mlx.core` or `numpy`.
    """
    rows = _index(values, xp)
    ids = _candidates(values, count, xp)
    excess = ids.shape[1] - count
    best = xp.argpartition(values[rows, ids], excess, axis=-1)[:, excess:]
    ids = xp.sort(ids[rows, best], axis=-1)
    found = values[rows, ids]
    order = np.argsort(-found, axis=-1, kind="stable") if xp is np else xp.argsort(-found, axis=-1)
    return ids[rows, order], found[rows, order]


def _candidates(values: Array, count: int, xp: Any) -> Array:
    """Return ids [R, few] that include those of each row's `count` largest values.

    If each row is arranged in lines of equal length, these values are in the `count` columns with the largest maxima,
    or in the incomplete last line. Devices that sort to partition only have to sort the maxima.
    """
    rows, length = values.shape
    lines = math.isqrt(length // count)
    width = length // lines
    maxima = values[:, : lines * width].reshape(rows, lines, width).max(axis=1)
    columns = xp.argpartition(maxima, width - count, axis=-1)[:, width - count :]
    ids = (columns[:, None] + xp.arange(lines)[:, None] * width).reshape(rows, -1)
    if lines * width == length:
        return ids
    rest = xp.broadcast_to(xp.arange(lines * width, length), (rows, length - lines * width))
    return xp.concatenate([ids, rest], axis=-1)


def _index(values: Array, xp: Any) -> Array:
    return xp.arange(len(values))[:, None]
