"""Sandbox processes, which run untrusted programs: chat templates, and the compiler of grammars.

Both can take any amount of time and memory, and a thread cannot interrupt them. A sandbox process limits itself, and
its death affects no other request. It loads no model library, has no pipe of the host, and exits with the worker.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .process import LimitExceeded, Limits, Sandbox

__all__ = ["LimitExceeded", "Limits", "Sandbox"]


def __getattr__(name: str) -> object:
    """Import the worker's side on first use: the process itself, whose start is waited for, does not need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import process

    return getattr(process, name)
