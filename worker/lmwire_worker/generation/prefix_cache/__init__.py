"""What the model has computed for earlier prompts and answers, kept for those that begin alike.

`tree` finds what is known of a sequence of tokens, `layout` knows what a model's layers keep and how to put it
together again, `store` has the budget, and `self_check` holds what was kept against what is computed anew.
`disk` keeps it for the next process, in files that `cache_file` describes and a `directory` holds, and `segments` finds
what is in them.
"""

from .cache_schema import CacheSchema, CacheSource, flatten_caches
from .disk_tier import DiskRead, DiskTier, open_disk_tier
from .store import CacheHit, PrefixCache
from .verification import logits_match

__all__ = [
    "CacheHit",
    "CacheSchema",
    "CacheSource",
    "DiskRead",
    "DiskTier",
    "PrefixCache",
    "flatten_caches",
    "logits_match",
    "open_disk_tier",
]
