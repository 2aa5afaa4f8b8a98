"""Continuous batching on top of mlx-lm's generator, and the one package that touches that library's internals.

mlx-lm (0.32) samples row by row when rows have different samplers, and computes, splits and evaluates full
log-probabilities for every row of every step. The subclasses here sample all rows in one pass and compute nothing
that nobody asked for, which makes them faster than the generator that they build on. Its caches and its one-step-ahead
evaluation are used as they are. When prompts and answers take their turns is the caller's affair.
"""

from .caches import batches, other_kinds, prefill
from .continuous_batch import Generator, Progress
from .length_buckets import Buckets, homes, padding_worth
from .padding import takes_padding
from .row_cache import RowCache
from .rows import Row
from .shape_rounding import prepares_each_shape, recurring
from .speculative import Drafted
from .target_draft_pair import Pair

__all__ = [
    "Buckets",
    "Drafted",
    "Generator",
    "Pair",
    "Progress",
    "Row",
    "RowCache",
    "batches",
    "homes",
    "other_kinds",
    "padding_worth",
    "prefill",
    "prepares_each_shape",
    "recurring",
    "takes_padding",
]
