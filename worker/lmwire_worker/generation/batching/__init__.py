"""Continuous batching on top of mlx-lm's generator. Only this package uses that library's internals.

mlx-lm (0.32) samples row by row if rows have different samplers, and evaluates full log-probabilities for every row of
every step. The subclasses here sample all rows in one pass, and compute only what requests ask for, which is faster.
They reuse mlx-lm's caches and its evaluation one step ahead. The caller decides whether a step prefills or decodes.
"""

from .caches import name_special_caches, prefill, supports_batching
from .continuous_batch import ContinuousBatch, PromptProgress
from .length_buckets import LengthBucketedBatch, assign_buckets, max_padding_tokens
from .padding import supports_padding
from .row_cache import Checkpoint, RowCache
from .rows import Row
from .shape_rounding import compiles_each_shape, round_shape
from .speculative import SpeculativeBatch
from .target_draft_pair import TargetDraftPair

__all__ = [
    "Checkpoint",
    "ContinuousBatch",
    "LengthBucketedBatch",
    "PromptProgress",
    "Row",
    "RowCache",
    "SpeculativeBatch",
    "TargetDraftPair",
    "assign_buckets",
    "compiles_each_shape",
    "max_padding_tokens",
    "name_special_caches",
    "prefill",
    "round_shape",
    "supports_batching",
    "supports_padding",
]
