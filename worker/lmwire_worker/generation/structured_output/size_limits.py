"""Limits on the size of schemas and grammars: the compiler's work can grow with the square of their size."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from lmwire_protocol import RequestError

MAX_SCHEMA_VALUES: Final = 20_000
"""Maximum number of values in a schema, at all levels."""
MAX_ALTERNATIVES: Final = 1000
MAX_ENUM_VALUES: Final = 10_000
MAX_DEPTH: Final = 100
MAX_REFERENCES: Final = 1000
"""Maximum number of a grammar's rules, or of a schema's references. The compiler follows them recursively, and a stack
overflow ends the process."""
MAX_MULTIPLE_OF: Final = 10_000
"""Maximum of a `multipleOf`, as the whole number of its digits without leading and trailing zeros. Its automaton has
as many states."""
MAX_CHARACTERS: Final = 2**20
"""Maximum length of a grammar, or of all texts in a schema, in characters."""
MAX_PATTERN_CHARACTERS: Final = 2**16
MAX_LENGTHS: Final = {
    "anyOf": MAX_ALTERNATIVES,
    "oneOf": MAX_ALTERNATIVES,
    "allOf": MAX_ALTERNATIVES,
    "enum": MAX_ENUM_VALUES,
}


def invalid_request(path: str, problem: str) -> RequestError:
    """Return an invalid_request error, in the form of the decoder's errors.

    Args:
        path: The path of the part at fault in the request.
        problem: What is wrong with the part.
    """
    return RequestError("invalid_request", f"`{path}`: {problem}", field=path)


def check_size(schema: dict[str, Any], path: str) -> None:
    """Check that a schema is small enough to compile.

    Args:
        schema: Any JSON object.
        path: The schema's path in the request.

    Raises:
        RequestError: invalid_request, with the path of the part at fault.
    """
    values = characters = references = 0
    rest: list[_Place] = [_Place(schema, path)]
    while rest:
        place = rest.pop()
        if place.depth > MAX_DEPTH:
            raise invalid_request(path, f"is nested too deep; {MAX_DEPTH} levels always work")
        for name, part in _parts(place.value):
            values += 1
            characters += len(part if isinstance(part, str) else "") + len(name if isinstance(name, str) else "")
            references += name == "$ref"
            if values > MAX_SCHEMA_VALUES or characters > MAX_CHARACTERS:
                largest = f"at most {MAX_SCHEMA_VALUES} values and {MAX_CHARACTERS} characters are allowed"
                raise invalid_request(path, f"is too large a schema; {largest}")
            inner = _Place(part, name, place, place.depth + 1)
            if name == "multipleOf" and isinstance(part, int | float) and _digits(part) > MAX_MULTIPLE_OF:
                raise invalid_request(
                    str(inner), f"has digits above {MAX_MULTIPLE_OF}, and is compiled into as many states"
                )
            if isinstance(part, list) and name in MAX_LENGTHS:
                check_count(len(part), MAX_LENGTHS[name], "values" if name == "enum" else "alternatives", inner)
            if isinstance(part, dict | list):
                rest.append(inner)
    check_count(references, MAX_REFERENCES, "references", path)


def check_count(count: int, limit: int, unit: str, path: "str | _Place") -> None:
    """Check a number of parts.

    Args:
        count: The number of parts.
        limit: The maximum number.
        unit: The name of the parts, in the plural.
        path: The path of the value that contains them.

    Raises:
        RequestError: invalid_request: there are too many.
    """
    if count > limit:
        raise invalid_request(str(path), f"has {count} {unit}, where at most {limit} are allowed")


@dataclass(frozen=True, slots=True)
class _Place:
    """A part of a schema. Its path is built only for an error: names can be long, and schemas large."""

    value: Any
    name: str | int
    outer: "_Place | None" = None
    depth: int = 1

    def __str__(self) -> str:
        if self.outer is None:
            return str(self.name)
        return f"{self.outer}[{self.name}]" if isinstance(self.name, int) else f"{self.outer}.{self.name}"


def _digits(number: float) -> int:
    """Return a number's digits as a whole number, such as 25 for 0.025 and for 2500."""
    digits = Decimal(repr(number)).as_tuple().digits
    return int("".join(map(str, digits)).rstrip("0") or "0")


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)
