"""Sandbox processes, which run untrusted programs: chat templates, and the compiler of grammars.

Both can take any amount of time and memory, and a thread cannot interrupt them. A sandbox process limits itself, and
its death affects no other request. It loads no model library, has no pipe of the host, and exits with the worker.
"""

from .process import LimitExceeded, Limits, Sandbox

__all__ = ["LimitExceeded", "Limits", "Sandbox"]
