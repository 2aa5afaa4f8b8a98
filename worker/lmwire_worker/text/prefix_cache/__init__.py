"""What the model has computed for earlier prompts and answers, kept for those that begin alike.

`tree` finds what is known of a sequence of tokens, `layout` knows what a model's layers keep and how to put it
together again, `store` has the budget, and `self_check` holds what was kept against what is computed anew.
"""

from .layout import Layout, Source
from .self_check import same_logits
from .store import PrefixCache, Start

__all__ = ["Layout", "PrefixCache", "Source", "Start", "same_logits"]
