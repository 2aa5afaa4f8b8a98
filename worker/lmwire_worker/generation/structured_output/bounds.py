"""How large a schema or a grammar may be: its compiler follows each part to the next, and some of them in pairs."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from lmwire_protocol import RequestError

NODES: Final = 20_000
"""Values in a schema: objects, lists and what they hold."""
ALTERNATIVES: Final = 1000
VALUES: Final = 10_000
DEPTH: Final = 100
LINKS: Final = 1000
"""Rules of a grammar, references of a schema: the compiler follows one to the next on its stack, whose end is the end
of the process."""
MULTIPLE: Final = 10_000
"""The digits of a `multipleOf`, leading and trailing zeros aside: its automaton has as many states."""
CHARACTERS: Final = 2**20
"""Of all that an answer is held to."""
PATTERN_CHARACTERS: Final = 2**16
LISTS: Final = {"anyOf": ALTERNATIVES, "oneOf": ALTERNATIVES, "allOf": ALTERNATIVES, "enum": VALUES}


def invalid(path: str, problem: str) -> RequestError:
    """A refusal, worded as the decoder's are."""
    return RequestError("invalid_request", f"`{path}`: {problem}", field=path)


def check_size(schema: dict[str, Any], path: str) -> None:
    """Raise invalid_request when a schema is larger than is compiled, with the path of the part at fault.

    Args:
        schema: Any JSON.
        path: Where it stands in the request.
    """
    values = characters = references = 0
    rest: list[_Place] = [_Place(schema, path)]
    while rest:
        place = rest.pop()
        if place.depth > DEPTH:
            raise invalid(path, f"is nested too deep; {DEPTH} levels always work")
        for name, part in _parts(place.value):
            values += 1
            characters += len(part if isinstance(part, str) else "") + len(name if isinstance(name, str) else "")
            references += name == "$ref"
            if values > NODES or characters > CHARACTERS:
                largest = f"at most {NODES} values and {CHARACTERS} characters are allowed"
                raise invalid(path, f"is too large a schema; {largest}")
            inner = _Place(part, name, place, place.depth + 1)
            if name == "multipleOf" and isinstance(part, int | float) and _digits(part) > MULTIPLE:
                raise invalid(str(inner), f"has digits above {MULTIPLE}, and is compiled into as many states")
            if isinstance(part, list) and name in LISTS:
                check_count(len(part), LISTS[name], "values" if name == "enum" else "alternatives", inner)
            if isinstance(part, dict | list):
                rest.append(inner)
    check_count(references, LINKS, "references", path)


def check_count(count: int, most: int, what: str, path: "str | _Place") -> None:
    """Raise invalid_request when there is more of something than there may be.

    Args:
        count: How many there are.
        most: How many there may be.
        what: Their name.
        path: Of what holds them.
    """
    if count > most:
        raise invalid(str(path), f"has {count} {what}, where at most {most} are allowed")


@dataclass(frozen=True, slots=True)
class _Place:
    """A part of a schema. Its path is written only when it is at fault: names can be long, and parts many."""

    value: Any
    name: str | int
    outer: "_Place | None" = None
    depth: int = 1

    def __str__(self) -> str:
        if self.outer is None:
            return str(self.name)
        return f"{self.outer}[{self.name}]" if isinstance(self.name, int) else f"{self.outer}.{self.name}"


def _digits(number: float) -> int:
    """Return a number's digits as a whole number: 25 for 0.025 and for 2500."""
    digits = Decimal(repr(number)).as_tuple().digits
    return int("".join(map(str, digits)).rstrip("0") or "0")


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)
