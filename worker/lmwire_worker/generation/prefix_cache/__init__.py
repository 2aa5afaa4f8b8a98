"""What the model has computed for earlier prompts and answers, kept for those that begin alike.

`tree` finds what is known of a sequence of tokens, `layout` knows what a model's layers keep and how to put it
together again, `store` has the budget, and `self_check` holds what was kept against what is computed anew.
`disk` keeps it for the next process, in files that `cache_file` describes and a `directory` holds, and `segments` finds
what is in them.
"""

from .cache_schema import Layout, Source, parts
from .disk_tier import Disk, Read, open_disk
from .store import PrefixCache, Start
from .verification import same_logits

__all__ = ["Disk", "Layout", "PrefixCache", "Read", "Source", "Start", "open_disk", "parts", "same_logits"]
