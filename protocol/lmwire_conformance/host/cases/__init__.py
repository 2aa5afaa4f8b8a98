"""Every case, one module for each group.

A case is a short conversation. Its name says what a correct host does, with the host as the subject. The first line of
its docstring says the same as an instruction to the host.
"""

from typing import Final

from . import cancellation, choices, commands, events, lines, results, shutdown, startup, tool_calls, worker_loss
from .registry import CASES, HostCase, group_name

__all__ = ["CASES", "HostCase"]

_GROUPS: Final = (startup, commands, events, choices, tool_calls, results, cancellation, worker_loss, lines, shutdown)
"""The modules that register cases, the basic groups first."""
_ORDER: Final = [group_name(module.__name__) for module in _GROUPS]

CASES.sort(key=lambda case: _ORDER.index(case.group))
