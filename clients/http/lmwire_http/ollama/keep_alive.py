"""`keep_alive`: how long a model stays in memory after a request."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from math import inf
from typing import Final, TypeAlias

from ..errors import invalid_field
from ..http.context import RequestContext

KeepAlive: TypeAlias = int | float | str
"""Seconds, or a duration such as `5m`. A negative one stands for ever."""

_FIELD: Final = "keep_alive"
_UNITS_S: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER: Final = r"(\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})"
_PART: Final = re.compile(rf"{_NUMBER}(ns|us|µs|ms|s|m|h)", re.ASCII)
_TEXT: Final = re.compile(rf"[+-]?(?:{_NUMBER}|(?:{_PART.pattern}){{1,8}})", re.ASCII)


def idle_limit(keep_alive: KeepAlive | None) -> float | None:
    """Return the time without a request after which the model is unloaded, in seconds; None if the field is absent.

    Args:
        keep_alive: The field. The syntax of durations is that of https://pkg.go.dev/time#ParseDuration.

    Raises:
        ApiError: The text is not a duration.
    """
    if keep_alive is None:
        return None
    seconds = _parse(keep_alive) if isinstance(keep_alive, str) else float(keep_alive)
    return inf if seconds < 0 else seconds


@contextmanager
def keeping_alive(context: RequestContext, idle_s: float | None) -> Generator[None]:
    """Set how long the model that the block uses stays in memory after it.

    Args:
        context: The request's context, which the block gives the model's id.
        idle_s: The time in seconds; None to leave it as it is.
    """
    try:
        yield
    finally:
        if idle_s is not None:
            context.state.pool.set_idle_limit(context.model, idle_s)


def _parse(text: str) -> float:
    if (found := _TEXT.fullmatch(text)) is None:
        problem = "must be a number of seconds or a duration such as 5m; 0 unloads the model, and -1 keeps it loaded"
        raise invalid_field(f"{_FIELD}: {problem}", _FIELD)
    if found[1]:
        return float(text)
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))
    return -seconds if text.startswith("-") else seconds
