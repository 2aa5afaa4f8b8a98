"""Continuous batching: the rows of all requests are computed together, and come and go at any step.

The models and the caches are mlx-lm's, used by their public names. What requests do not ask for is not computed: one
pass samples all rows, and log-probabilities are those of the rows that want them. A step is evaluated while its
predecessor's tokens are delivered. The caller decides whether a step prefills or decodes.
"""

from .batch import Batch
from .caches import Checkpoint, RowCache, name_special_caches, supports_batching
from .chunks import compiles_each_shape, prefill, round_shape, supports_padding
from .length_buckets import assign_buckets, max_padding_tokens
from .rows import PromptProgress, Row
from .speculative import SpeculativeBatch, TargetDraftPair

__all__ = [
    "Batch",
    "Checkpoint",
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
