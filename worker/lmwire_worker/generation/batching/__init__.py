"""Continuous batching: the rows of all requests are computed together, and come and go at any step.

The models and the caches are mlx-lm's, used by their public names. What requests do not ask for is not computed: one
pass samples all rows, and log-probabilities are those of the rows that want them. A step is evaluated while its
predecessor's tokens are delivered. The caller decides whether a step prefills or decodes.
"""

from .batch import Batch, assign_buckets, max_padding_tokens
from .decoding import Decoding
from .padding import compiles_each_shape, round_shape, supports_padding
from .row_group import prefill
from .rows import PromptProgress, Row
from .speculative import TargetDraftPair
from .step_speeds import StepSpeeds

__all__ = [
    "Batch",
    "Decoding",
    "PromptProgress",
    "Row",
    "StepSpeeds",
    "TargetDraftPair",
    "assign_buckets",
    "compiles_each_shape",
    "max_padding_tokens",
    "prefill",
    "round_shape",
    "supports_padding",
]
