"""Every case, a module a theme: each is a short conversation, and the first line of its docstring is what must hold."""

from . import ending, losing, reading, starting, waiting, writing  # noqa: F401 (they register their cases)
from .registry import CASES, HostCase

__all__ = ["CASES", "HostCase"]
