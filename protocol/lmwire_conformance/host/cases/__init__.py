"""Every case, a module a group: each is a short conversation, and the first line of its docstring is what must hold."""

from typing import Final

from . import cancellation, choices, commands, events, shutdown, startup, tool_calls, worker_loss  # noqa: F401 (they register their cases)
from .registry import CASES, HostCase

__all__ = ["CASES", "HostCase"]

_ORDER: Final = ("startup", "commands", "events", "choices", "tool-calls", "cancellation", "worker-loss", "shutdown")
"""From what everything else needs to what a host comes to last."""

CASES.sort(key=lambda case: _ORDER.index(case.group))
