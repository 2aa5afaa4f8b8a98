"""The tables of PROTOCOL.md and MODELS.md agree with the Structs."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from lmwire import ShutdownTimeouts
from lmwire.transport.process import EXIT_TIMEOUT_AFTER_EOF_S
from lmwire_protocol import CODES, COMMANDS, EXIT_CODES, FEATURES, Chat, Generation, events, limits
from support.protocol import prose

TABLES = prose.tables()
SHARED: dict[type, str] = {events.ModelDone: "The model", events.ResultDone: "The result"}
GENERATION = "The generation fields"
WITHIN = {"messages[].": "The messages", "tools[].": "The tools", "format.": "The formats"}
"""Headings of the tables that describe the members of these fields, for all commands."""


def field_table(heading: str, column: str) -> dict[str, dict[str, str]]:
    """Return the rows of a heading's tables that have `column`, by field. A field may have only one row."""
    tables = [table for table in TABLES.get(heading, []) if column in table.columns]
    rows = [row for table in tables for row in table.rows]
    found = prose.Table([], rows).by("field")
    assert len(found) == len(rows), heading
    return found


def parts(kind: Any) -> list[Any]:
    """Return a type's alternatives, without None and without wrappers."""
    if isinstance(kind, inspect.Metadata):
        return parts(kind.type)
    if isinstance(kind, inspect.UnionType):
        return [part for inner in kind.types for part in parts(inner)]
    return [] if isinstance(kind, inspect.NoneType) else [kind]


def type_words(kind: Any) -> set[str]:
    names = {
        inspect.IntType: "integer",
        inspect.FloatType: "number",
        inspect.StrType: "string",
        inspect.BoolType: "boolean",
        inspect.ListType: "list",
        inspect.TupleType: "list",
        inspect.DictType: "object",
        inspect.StructType: "object",
    }
    words: set[str] = set()
    for part in parts(kind):
        literal = isinstance(part, inspect.LiteralType)
        words |= {json.dumps(value) for value in part.values} if literal else {names[type(part)]}
    return words


def bounds_words(kind: Any, byte_limit: int | None = None) -> str:
    """Return a type's bounds as the tables write them."""
    if isinstance(kind, inspect.Metadata):
        return bounds_words(kind.type, (kind.extra_json_schema or {}).get("maxLength"))
    if isinstance(kind, inspect.UnionType):
        found = [bounds_words(part) for part in kind.types]
    else:
        found = [_bounds(part, byte_limit) for part in parts(kind)]
    return "; ".join(filter(None, found))


def _bounds(kind: Any, byte_limit: int | None) -> str:
    if isinstance(kind, inspect.TupleType):
        return f"{len(kind.item_types)} items"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        low = f">{kind.gt:g}" if kind.gt is not None else "" if kind.ge is None else f"{kind.ge:g}"
        high = "" if kind.le is None else "2^53-1" if kind.le == limits.MAX_INT else f"{kind.le:g}"
        return f"{low}..{high}" if low or high else ""
    if isinstance(kind, inspect.StrType | inspect.ListType | inspect.DictType):
        low, high = kind.min_length, byte_limit or kind.max_length
        if low is not None or high is not None:
            return f"{low or 0}..{'' if high is None else high} {_unit(kind)}"
    return ""


def _unit(kind: Any) -> str:
    if isinstance(kind, inspect.StrType):
        return "bytes" if kind.max_length is None else "characters"
    return "items" if isinstance(kind, inspect.ListType) else "members"


@dataclass(frozen=True)
class Place:
    """A field, or an item of a list or an object, as tables describe it."""

    kinds: tuple[Any, ...]
    """Types of the field; several if several Structs of a union have it."""
    field: inspect.Field | None = None

    @property
    def words(self) -> set[str]:
        return set().union(*map(type_words, self.kinds))

    @property
    def bounds(self) -> str:
        return "; ".join(dict.fromkeys(filter(None, map(bounds_words, self.kinds))))

    @property
    def required(self) -> bool:
        return all(isinstance(kind, inspect.LiteralType) for kind in self.kinds) or bool(
            self.field and self.field.required
        )

    @property
    def default(self) -> str:
        if self.field is None:
            return "required" if self.required else ""
        if self.field.required:
            return "required"
        factory = self.field.default_factory
        value = self.field.default if factory is msgspec.NODEFAULT else factory()
        return "none" if value is None else "`" + json.dumps(value, separators=(",", ":")).removesuffix(".0") + "`"

    @property
    def presence(self) -> str:
        return "" if self.field is None else "always" if self.field.required else "sometimes"


def described(struct: type[msgspec.Struct]) -> dict[str, Place]:
    """Return every field of a Struct by its path, with the items of lists and the members of objects."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    found: dict[str, Place] = {}
    for path, place in flatten(info):
        before = found.get(path)
        found[path] = Place(before.kinds + place.kinds, place.field) if before else place
    return found


def flatten(struct: inspect.StructType, prefix: str = "") -> Iterator[tuple[str, Place]]:
    """Yield the fields in a Struct with their paths. A path repeats if several Structs of a union have it."""
    if struct.tag_field == "type":
        yield f"{prefix}type", Place((inspect.LiteralType(values=(str(struct.tag),)),))
    for field in struct.fields:
        yield prefix + field.encode_name, Place((field.type,), field)
        yield from _inside(field.type, prefix + field.encode_name)


def _inside(kind: Any, path: str) -> Iterator[tuple[str, Place]]:
    for part in parts(kind):
        if isinstance(part, inspect.StructType):
            yield from flatten(part, f"{path}.")
        elif isinstance(part, inspect.DictType) and not isinstance(part.value_type, inspect.AnyType):
            yield f"{path}.*", Place((part.value_type,))
        elif isinstance(part, inspect.ListType | inspect.TupleType):
            item = part.item_type if isinstance(part, inspect.ListType) else part.item_types[0]
            yield f"{path}[]", Place((item,))
            yield from _inside(item, f"{path}[]")


def is_within(path: str) -> bool:
    return path.startswith(tuple(WITHIN))


def command_tables() -> list[Any]:
    generation = {path: place for path, place in described(Generation).items() if not is_within(path)}
    cases = [pytest.param(GENERATION, generation, id=GENERATION)]
    for prefix, heading in WITHIN.items():
        inner = {path: place for path, place in described(Chat).items() if path.startswith(prefix)}
        cases.append(pytest.param(heading, inner, id=heading))
    for name, command in COMMANDS.items():
        apart = set(generation) if issubclass(command, Generation) else set()
        fields = {path: place for path, place in described(command).items() if not (path in apart or is_within(path))}
        cases.append(pytest.param(name, fields, id=name))
    return cases


def event_tables() -> list[Any]:
    tags = ("progress", "token", "tool_call", "embedding", "segment", "error")
    cases = [pytest.param(tag, described(events.EVENTS[tag]), id=tag) for tag in tags]
    for name, command in COMMANDS.items():
        fields = described(command.done)
        del fields["id"], fields["cmd"]  # the text above the forms has them
        cases.append(pytest.param(SHARED.get(command.done, name), fields, id=f"done of {name}"))
    return cases


@pytest.mark.parametrize(("heading", "fields"), command_tables())
def test_a_command_table_agrees_with_its_struct(heading: str, fields: dict[str, Place]) -> None:
    rows = field_table(heading, "default")
    assert sorted(rows) == sorted(fields)
    for path, place in fields.items():
        row = rows[path]
        assert set(row["type"].split(" or ")) == place.words, path
        assert row["default"] == place.default, path
        assert row["bounds"] == place.bounds, path


@pytest.mark.parametrize(("heading", "fields"), event_tables())
def test_an_event_table_agrees_with_its_struct(heading: str, fields: dict[str, Place]) -> None:
    rows = field_table(heading, "present")
    assert sorted(rows) == sorted(fields)
    for path, place in fields.items():
        assert set(rows[path]["type"].split(" or ")) == place.words, path
        assert rows[path]["present"] == place.presence, path


def test_what_is_within_a_shared_field_is_the_same_for_all_commands() -> None:
    for name, command in COMMANDS.items():
        for path, place in described(command).items():
            assert not is_within(path) or place == described(Chat)[path], (name, path)


def test_the_features_agree() -> None:
    (table,) = TABLES["Newer than 1.0"]
    listed = {
        f"{command}.{name}".removeprefix("the protocol.")
        for row in table.rows
        for command in row["of"].replace("`", "").split(" and ")
        for name in re.findall(r"`([^`]+)`", row["newer than 1.0"])
    }
    assert listed == set(FEATURES)


def test_every_row_for_people_has_a_meaning() -> None:
    for heading, found in TABLES.items():
        for table in found:
            bare = [row for row in table.rows if "meaning" in row and not row["meaning"]]
            assert all(row["field"].endswith(("[]`", "*`")) for row in bare), heading


def test_the_overview_agrees_with_the_commands() -> None:
    (overview,) = [table for table in TABLES["Commands"] if "out of band" in table.columns]
    rows = {re.sub(r"\W*(\w+)\W.*", r"\1", command): row for command, row in overview.by("command").items()}
    assert list(rows) == list(COMMANDS)
    for name, command in COMMANDS.items():
        row = rows[name]
        assert row["out of band"] == ("yes" if command.out_of_band else "no")
        assert row["barrier"] == ("yes" if command.barrier else "no")
        streams = [event.__struct_config__.tag for event in command.streams]
        assert row["events before the terminal"] == ", ".join(map(str, streams))


def test_the_error_table_agrees_with_the_codes() -> None:
    (table,) = TABLES["Errors"]
    rows = table.by("code")
    assert list(rows) == list(CODES)
    assert {code: row["retryable"] == "yes" for code, row in rows.items()} == {code: CODES[code][0] for code in CODES}


def test_the_exit_codes_agree() -> None:
    (table,) = TABLES["How a worker ends"]
    assert [int(status) for status in table.by("exit code")] == list(EXIT_CODES)


def test_the_forms_of_the_events_agree() -> None:
    (table,) = [table for table in TABLES["Events"] if "sometimes" in table.columns]
    shown = {
        name: [re.findall(r"`(\w+)`", row[column]) for column in ("always present", "sometimes")]
        for row in table.rows
        for name in re.findall(r"`(\w+)`", row["event"].removeprefix("`done` of "))
    }
    streamed = {kind.__struct_config__.tag: kind for command in COMMANDS.values() for kind in command.streams}
    forms = {**streamed, "error": events.Error, **{name: command.done for name, command in COMMANDS.items()}}
    assert shown == {name: [*_members(form)] for name, form in forms.items()}


def _members(form: type[msgspec.Struct]) -> Iterator[list[str]]:
    """Yield the names that are always present in an event, then the others, without those of all."""
    fields = [field for field in msgspec.structs.fields(form) if field.encode_name not in ("id", "cmd")]
    for required in (True, False):
        yield [field.encode_name for field in fields if field.required is required]


def test_the_numbers_agree() -> None:
    kib, mib = 1024, 1024 * 1024
    (table,) = TABLES["Numbers"]
    rows = {row["what"]: row["number"] for row in table.rows}
    waits = ShutdownTimeouts()
    assert rows == {
        "line to the worker": f"{limits.LINE_IN_BYTES // mib} MiB",
        "line from the worker, newline included": f"under {limits.LINE_OUT_BYTES // kib} KiB",
        "unfinished requests": f"{limits.REQUESTS:,}",
        "lines of unfinished requests together": f"{limits.QUEUED_BYTES // mib} MiB",
        "id": f"1 to {limits.ID_BYTES} bytes",
        "nesting that always works": "100",
        "integers": "±(2^53-1)",
        "text of a `token`, arguments of a `tool_call`, in JSON form": f"{limits.TEXT_BYTES // kib} KiB",
        "token ids of a `token`": f"{limits.TOKEN_IDS:,}",
        "numbers of an `embedding`": f"{limits.EMBEDDING_VALUES:,}",
        "samples of an `audio`": f"{limits.AUDIO_BYTES // 2:,}",
        "an error's sentence, in JSON form": f"{limits.ERROR_BYTES // kib} KiB",
        "`progress` of one request": "10 a second",
        "line that a host takes": f"{limits.CLIENT_LINE_BYTES // mib} MiB",
        "banner that a host skips": f"{limits.BANNER_BYTES // kib} KiB",
        "wait for `hello`": "30 s",
        "waits of a shutdown": f"{waits.quit:g}, {waits.eof:g}, {waits.term:g}, 5 s",
        "from the end of stdout to the exit": f"{EXIT_TIMEOUT_AFTER_EOF_S:g} s",
        "from the exit to the end of stdout": "1 s",
    }
    named = [row["name"].strip("`") for row in table.rows if row["name"]]
    assert named == list(events.Limits.__struct_fields__)
