"""Former names of the public API, which still work and issue a DeprecationWarning."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

RENAMED: Final = {
    "Arrival": "RequestEvents",
    "CallPiece": "ToolCallDelta",
    "CrashLoop": "CircuitBreaker",
    "NotServed": "UnsupportedByWorker",
    "Options": "GenerateOptions",
    "Patience": "ShutdownTimeouts",
    "Piece": "TokenDelta",
    "Session": "ClientSession",
    "sound_part": "audio_part",
}
"""Former names in `lmwire`, and the present ones."""


def warn_renamed(former: str, present: str, *, callers: int = 1) -> None:
    """Warn that a name has changed.

    Args:
        former: The former name.
        present: The present name.
        callers: Number of calls from the user's line to this function's caller.
    """
    warnings.warn(f"{former} is deprecated: use {present}", DeprecationWarning, stacklevel=2 + callers)


def renamed_keywords(
    **renamed: str,
) -> Callable[[Callable[Parameters, Returned]], Callable[Parameters, Returned]]:
    """Return a decorator that lets a function also accept keyword arguments by their former names.

    Args:
        **renamed: The present name for each former one.
    """

    def decorate(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
        @wraps(function)
        def wrapper(*args: Parameters.args, **keywords: Parameters.kwargs) -> Returned:
            for former in renamed.keys() & keywords:
                warn_renamed(f"{former}=", f"{renamed[former]}=")
                keywords[renamed[former]] = keywords.pop(former)
            return function(*args, **keywords)

        return wrapper

    return decorate


class RenamedAttribute:
    """The former name of a method or property, in the body of its class.

    Args:
        present: The present name.
    """

    def __init__(self, present: str) -> None:
        self._present = present

    def __set_name__(self, owner: type, name: str) -> None:
        self._former = name

    def __get__(self, instance: object, owner: type) -> Any:
        warn_renamed(f"{owner.__name__}.{self._former}", self._present)
        return getattr(owner if instance is None else instance, self._present)
