"""Every vector is read as it states, and both sides of every bound have a vector."""

import json
from collections import defaultdict
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from lmwire_conformance import vector as vectors
from lmwire_conformance.vector import Vector
from lmwire_protocol import CODES, COMMANDS, Command, RequestError
from support.many_cases import for_each
from support.protocol.field_paths import Path, paths, places
from support.protocol.reading import event_kind, read_command, read_event, schema_accepts

VALID_COMMANDS = vectors.read("commands.valid")
INVALID_COMMANDS = vectors.read("commands.invalid")
VALID_EVENTS = vectors.read("events.valid")
INVALID_EVENTS = vectors.read("events.invalid")
UNREADABLE = ("parse_error", "line_too_long")


def each(items: list[Vector]) -> Any:
    return for_each(items, lambda vector: vector.name)


def is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def is_part(known: Any, value: Any) -> bool:
    """Return whether `value` contains all of `known`. It may have more members, which a reader ignores."""
    if isinstance(known, dict):
        return all(name in value and is_part(member, value[name]) for name, member in known.items())
    return known == value


@each(VALID_COMMANDS)
def test_a_valid_command_is_read(vector: Vector) -> None:
    id, command = read_command(vector.line)
    assert isinstance(command, Command), command
    assert (id, command.name) == (vector.entry["id"], vector.entry["cmd"])
    fields = {key: value for key, value in vector.object.items() if key not in ("id", "cmd")}
    fields = vector.entry.get("fields", fields)
    assert json.loads(msgspec.json.encode({name: getattr(command, name) for name in fields})) == fields
    defaults = type(command)(**{name: getattr(command, name) for name in fields})
    assert command == defaults, "a field that the line lacks must have its default"


@each(INVALID_COMMANDS)
def test_an_invalid_command_is_refused_with_its_code_field_and_id(vector: Vector) -> None:
    id, error = read_command(vector.line)
    assert isinstance(error, RequestError), error
    assert (error.code, error.field, id) == (vector.entry["code"], vector.entry.get("field"), vector.entry["id"])
    assert error.code in CODES
    assert error.message


@each(VALID_COMMANDS + [vector for vector in INVALID_COMMANDS if vector.entry["code"] not in UNREADABLE])
def test_the_schema_judges_a_command_as_the_decoder_does(vector: Vector) -> None:
    assert schema_accepts("Command", vector.object) == vector.entry.get("schema_valid", "code" not in vector.entry)


@each(VALID_EVENTS)
def test_a_valid_event_is_read_or_ignored(vector: Vector) -> None:
    event = read_event(vector.line, vector.entry.get("command"))
    assert (event is None) == vector.entry.get("ignored", False)
    if event is not None:
        assert is_part(msgspec.to_builtins(event), vector.object)


@each(INVALID_EVENTS)
def test_an_invalid_event_is_refused(vector: Vector) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        read_event(vector.line, vector.entry.get("command"))


@each(VALID_EVENTS)
def test_the_schema_accepts_a_valid_event(vector: Vector) -> None:
    kind = event_kind(vector.object["event"], vector.entry.get("command"))
    assert schema_accepts(kind, vector.object) == vector.entry.get("schema_valid", True)


@each([vector for vector in INVALID_EVENTS if is_json(vector.line)])
def test_the_schema_refuses_an_invalid_event(vector: Vector) -> None:
    kind = event_kind("done" if "command" in vector.entry else "", vector.entry.get("command"))
    assert not schema_accepts(kind, vector.object)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_valid_vector_and_one_with_an_unknown_field(name: str) -> None:
    assert any(vector.entry["cmd"] == name for vector in VALID_COMMANDS)
    assert any(vector.name == f"{name}: unknown field" for vector in INVALID_COMMANDS)


def bounded_fields() -> list[tuple[str, Path, Any]]:
    """Return every (command, path, type) with a bound."""
    found: list[tuple[str, Path, Any]] = []
    for name, command in COMMANDS.items():
        for path, kind in paths(inspect.type_info(command)):
            inner = kind.type if isinstance(kind, inspect.Metadata) else kind
            if any(getattr(inner, bound, None) is not None for bound in ("ge", "gt", "le", "min_length", "max_length")):
                found.append((name, path, inner))
    return found


BOUNDED = bounded_fields()
LONGEST = 2048
"""Items of the longest list in a vector: hosts read all vectors. `test_bounds` has longer lists."""
SIZED = {inspect.StrType: str, inspect.ListType: list, inspect.DictType: dict}


def sizes(values: list[Any], kind: Any) -> list[float]:
    """Return the numbers to which a type's bounds apply: the values themselves, or their lengths."""
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return [len(value) for value in values if isinstance(value, SIZED[type(kind)])]


Sizes = dict[tuple[str, Path, type], list[float]]
"""Numbers by command, path and kind."""


def measured(items: list[Vector]) -> Sizes:
    """Return the values of vectors in each field with a bound. Vectors that are not JSON objects have none."""
    found: Sizes = defaultdict(list)
    for fields in (vector.object for vector in items if vector.entry.get("code") not in UNREADABLE):
        for command, path, kind in BOUNDED:
            if fields.get("cmd") == command:
                found[command, path, type(kind)] += sizes(
                    [value_there for _, value_there in places(fields, path)], kind
                )
    return found


@pytest.fixture(scope="module")
def held_inside() -> Sizes:
    return measured(VALID_COMMANDS)


@pytest.fixture(scope="module")
def held_outside() -> Sizes:
    return measured(INVALID_COMMANDS)


@pytest.mark.parametrize(("command", "path", "kind"), BOUNDED, ids=lambda value: str(value)[:40])
def test_every_bound_has_a_vector_at_it_and_one_just_beyond(
    held_inside: Sizes, held_outside: Sizes, command: str, path: Path, kind: Any
) -> None:
    field = command, path, type(kind)
    inside, outside = held_inside[field], held_outside[field]
    step = 1e-6 if isinstance(kind, inspect.FloatType) else 1
    for bound, beyond in (("ge", -1), ("min_length", -1), ("le", 1), ("max_length", 1)):
        if (limit := getattr(kind, bound, None)) is not None and (bound != "max_length" or limit <= LONGEST):
            assert limit in inside, f"nothing at {limit}"
            assert any(abs(value - limit - beyond * step) < step / 2 for value in outside), f"nothing beyond {limit}"
    if (limit := getattr(kind, "gt", None)) is not None:
        assert limit in outside
        assert any(limit < value <= limit + step for value in inside)
