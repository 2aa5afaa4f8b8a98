"""The prefix cache: KV caches of earlier prompts and answers, for requests that begin with the same tokens.

`store` is the cache with its budget. `disk_tier` stores entries for later processes: `cache_file` is the format of a
file, and `segments` the index of the files' tokens.
"""

from .store import CacheHit, PrefixCache

__all__ = ["CacheHit", "PrefixCache"]
