"""Length buckets: a group pads the cache of each row to its longest row, so short rows would pay for long ones."""

import math
from collections.abc import Hashable, Mapping
from typing import Final, TypeVar

Key = TypeVar("Key", bound=Hashable)

FIRST_BUCKET_TOKENS: Final = 512
"""Maximum length of rows in the first bucket. Each further bucket holds rows up to twice as long."""
MIN_PADDING_TOKENS: Final = 8192
"""Tokens of padding that never justify another group, however small the model: each group costs a step of its own."""


def max_padding_tokens(weights_bytes: float, token_bytes: float) -> float:
    """Return the tokens of padding from which another group is cheaper.

    Another group reads all weights once more. The limit is half of the padding that takes as long to read, since
    padding takes memory too.

    Args:
        weights_bytes: Size of the model's weights.
        token_bytes: Size of one token in the cache.
    """
    return max(MIN_PADDING_TOKENS, weights_bytes / (2 * token_bytes)) if token_bytes else math.inf


def bucket_of(length: int) -> int:
    """Return the bucket of a row of `length` tokens."""
    return max(0, (length - 1) // FIRST_BUCKET_TOKENS).bit_length()


def assign_buckets(lengths: Mapping[Key, int], padding: float) -> dict[Key, int]:
    """Return the bucket that decodes each row: its own, or that of a longer row.

    Args:
        lengths: Tokens of each row.
        padding: Maximum tokens of padding in a group. Rows of one bucket are decoded together in any case.
    """
    buckets: dict[Key, int] = {}
    group: list[Key] = []
    tokens = 0
    for row, length in sorted(lengths.items(), key=lambda item: item[1]):
        is_longer = group and bucket_of(length) > bucket_of(lengths[group[-1]])
        if is_longer and len(group) * length - tokens > padding:
            group, tokens = [], 0
        group.append(row)
        tokens += length
        buckets |= dict.fromkeys(group, bucket_of(length))
    return buckets
