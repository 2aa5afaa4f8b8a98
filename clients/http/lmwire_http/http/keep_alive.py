"""`keep_alive` and `ttl`: how long a model stays in memory after a request, in Ollama's and LM Studio's APIs."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Final, TypeAlias

from ..errors import ApiError, invalid_field

if TYPE_CHECKING:
    from .context import RequestContext

KeepAlive: TypeAlias = int | float | str
"""Seconds, or a duration such as `5m`. A negative one stands for ever."""

IDLE_FIELDS: Final = ("keep_alive", "ttl")
"""The fields that every API has, as other servers do."""
_UNITS_S: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER: Final = r"(\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})"
_PART: Final = re.compile(rf"{_NUMBER}(ns|us|µs|ms|s|m|h)", re.ASCII)
_TEXT: Final = re.compile(rf"[+-]?(?:{_NUMBER}|(?:{_PART.pattern}){{1,8}})", re.ASCII)


def idle_limit(keep_alive: object, field: str = IDLE_FIELDS[0]) -> float | None:
    """Return the time without a request after which the model is unloaded, in seconds; None if the field is absent.

    Args:
        keep_alive: The field: a `KeepAlive` or null. The syntax of durations is that of https://pkg.go.dev/time#ParseDuration.
        field: The field's name, for errors.

    Raises:
        ApiError: It is not a duration.
    """
    match keep_alive:
        case None:
            return None
        case str():
            seconds = _parse(keep_alive, field)
        case int() | float() if not isinstance(keep_alive, bool):
            seconds = float(keep_alive)
        case _:
            raise _invalid(field)
    return inf if seconds < 0 else seconds


def _parse(text: str, field: str) -> float:
    if (found := _TEXT.fullmatch(text)) is None:
        raise _invalid(field)
    if found[1]:
        return float(text)
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))
    return -seconds if text.startswith("-") else seconds


def _invalid(field: str) -> ApiError:
    problem = "must be a number of seconds or a duration such as 5m; 0 unloads the model, and -1 keeps it loaded"
    return invalid_field(f"{field}: {problem}", field)


@contextmanager
def keeping_alive(context: "RequestContext", idle_s: float | None) -> Generator[None]:
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
