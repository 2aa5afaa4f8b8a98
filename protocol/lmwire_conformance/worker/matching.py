"""Patterns: the form of a line in a transcript, since the line itself differs from worker to worker."""

import re
from collections.abc import Mapping
from typing import Any, Final

from lmwire_protocol.json_value import JsonValue

TYPES: Final[dict[str, Any]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "list": list,
    "object": dict,
}
MATCHERS: Final = ("$type", "$range", "$regex", "$same", "$not", "$or", "$each", "$has")


def matches(pattern: JsonValue, value: JsonValue, said: Mapping[str, Any], path: tuple[str | int, ...] = ()) -> bool:
    """Return whether a value matches a pattern. README.md beside the transcripts explains patterns.

    Args:
        pattern: JSON with matchers.
        value: JSON without null members, or None if the value is absent.
        said: The answers so far by id, for `$same`.
        path: The place of the value in the answer.
    """
    if isinstance(pattern, dict):
        if is_matcher(pattern):
            ((kind, wanted),) = pattern.items()
            return _matches_kind(kind, wanted, value, said, path)
        return isinstance(value, dict) and all(
            matches(item, value.get(name), said, (*path, name)) for name, item in pattern.items()
        )
    if isinstance(pattern, list):
        return (
            isinstance(value, list)
            and len(value) == len(pattern)
            and all(
                matches(item, found, said, (*path, place))
                for place, (item, found) in enumerate(zip(pattern, value, strict=True))
            )
        )
    return type(pattern) is type(value) and pattern == value


def is_matcher(pattern: Mapping[str, Any]) -> bool:
    """Return whether an object is a matcher, not an object to compare with."""
    return len(pattern) == 1 and next(iter(pattern)) in MATCHERS


def as_list(value: JsonValue) -> list[Any]:
    """Return a list as it is, and another value as a list of one."""
    return value if isinstance(value, list) else [value]


def _matches_kind(
    kind: str, wanted: Any, value: JsonValue, said: Mapping[str, Any], path: tuple[str | int, ...]
) -> bool:
    match kind:
        case "$type":
            return isinstance(value, TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
        case "$range":
            low, high = wanted
            return (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and (low is None or value >= low)
                and (high is None or value <= high)
            )
        case "$regex":
            return isinstance(value, str) and re.search(wanted, value) is not None
        case "$same":
            id, *elsewhere = as_list(wanted)
            return value == _at(said[id], tuple(elsewhere) or path)
        case "$not":
            return not matches(wanted, value, said, path)
        case "$or":
            return any(matches(one, value, said, path) for one in wanted)
        case "$each":
            return isinstance(value, list) and all(matches(wanted, item, said, path) for item in value)
        case _:  # $has
            return isinstance(value, list) and any(matches(wanted, item, said, path) for item in value)


def _at(answer: JsonValue, path: tuple[str | int, ...]) -> JsonValue:
    """Return the value at a place of an answer, or None if the place does not exist."""
    for step in path:
        if isinstance(answer, dict) and isinstance(step, str):
            answer = answer.get(step)
        elif isinstance(answer, list) and isinstance(step, int) and step < len(answer):
            answer = answer[step]
        else:
            return None
    return answer
