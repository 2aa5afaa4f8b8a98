"""Every case, one module for each group.

A case is a short conversation. Its name says what a correct host does, with the host as the subject. The first line of
its docstring says the same as an instruction to the host.
"""

from typing import Final

from . import cancellation, choices, commands, events, shutdown, startup, tool_calls, worker_loss  # noqa: F401 (they register their cases)
from .registry import CASES, HostCase

__all__ = ["CASES", "HostCase"]

_ORDER: Final = ("startup", "commands", "events", "choices", "tool-calls", "cancellation", "worker-loss", "shutdown")
"""The basic groups first."""

CASES.sort(key=lambda case: _ORDER.index(case.group))
