"""The prefix cache: KV caches of earlier prompts and answers, for requests that begin with the same tokens.

`store` is the cache with its budget. `radix_tree` finds prefixes, `cache_schema` splits and builds caches, and
`verification` compares hits with newly computed tokens. `disk_tier` stores entries for later processes: `cache_file`
is the format of a file, `directory` the folder of the files, and `segments` the index of their tokens.
"""

from .cache_schema import CacheSchema, CacheSource, flatten_caches
from .store import CacheHit, PrefixCache
from .verification import logits_match

__all__ = [
    "CacheHit",
    "CacheSchema",
    "CacheSource",
    "PrefixCache",
    "flatten_caches",
    "logits_match",
]
