"""Continuous batching on top of mlx-lm's generator, and the one package that touches that library's internals.

mlx-lm (0.32) samples row by row when rows have different samplers, and computes, splits and evaluates full
log-probabilities for every row of every step. The subclasses here sample all rows in one pass and compute nothing
that nobody asked for, which makes them faster than the generator that they build on. Its caches and its one-step-ahead
evaluation are used as they are. When prompts and answers take their turns is the caller's affair.
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
