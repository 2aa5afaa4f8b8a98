"""The tables of PROTOCOL.md say what the Structs say."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import inspect

import prose
from lmwire_protocol import CODES, COMMANDS, EXIT_CODES, Generation, events, limits

TABLES = prose.tables()
SHARED = {events.ModelDone: "The model", events.ResultDone: "The result"}
GENERATION = "The generation fields"
SIZED = {inspect.StrType: "bytes", inspect.BytesType: "bytes", inspect.ListType: "items"}


def field_table(heading: str, column: str) -> dict[str, dict[str, str]]:
    """The rows of a heading's table that has `column`; none when the section has no such table."""
    (table,) = [table for table in TABLES.get(heading, []) if column in table.columns] or [prose.Table([])]
    return table.by("field")


def parts(kind: Any) -> list[Any]:
    """A type's alternatives, without None and without wrappers."""
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
        inspect.StructType: "object",
    }
    words: set[str] = set()
    for part in parts(kind):
        literal = isinstance(part, inspect.LiteralType)
        words |= {json.dumps(value) for value in part.values} if literal else {names[type(part)]}
    return words


def bounds_words(kind: Any, byte_limit: int | None = None) -> str:
    """A type's bounds as the tables write them."""
    if isinstance(kind, inspect.Metadata):
        return bounds_words(kind.type, (kind.extra_json_schema or {}).get("maxLength"))
    found = [_bounds(part, byte_limit) for part in parts(kind)]
    return "; ".join(filter(None, found))


def _bounds(kind: Any, byte_limit: int | None) -> str:
    if isinstance(kind, inspect.TupleType):
        return f"{len(kind.item_types)} items"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        low = f">{kind.gt:g}" if kind.gt is not None else "" if kind.ge is None else f"{kind.ge:g}"
        high = "" if kind.le is None else "2^53-1" if kind.le == limits.MAX_INT else f"{kind.le:g}"
        return f"{low}..{high}" if low or high else ""
    if isinstance(kind, inspect.StrType | inspect.ListType):
        low, high = kind.min_length, byte_limit or kind.max_length
        if low is not None or high is not None:
            return f"{low or 0}..{'' if high is None else high} {SIZED[type(kind)]}"
    return ""


def flatten(struct: inspect.StructType, prefix: str = "") -> dict[str, inspect.Field | inspect.Type]:
    """Every field by its path, with the items of lists and the members of objects; items have no default."""
    found: dict[str, Any] = {}
    if struct.tag_field == "type":
        found[f"{prefix}type"] = inspect.LiteralType(values=(str(struct.tag),))
    for field in struct.fields:
        found[prefix + field.encode_name] = field
        found |= _inside(field.type, prefix + field.encode_name)
    return found


def _inside(kind: Any, path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in parts(kind):
        if isinstance(part, inspect.StructType):
            found |= flatten(part, f"{path}.")
        elif isinstance(part, inspect.ListType | inspect.TupleType):
            item = part.item_type if isinstance(part, inspect.ListType) else part.item_types[0]
            found[f"{path}[]"] = item
            found |= _inside(item, f"{path}[]")
    return found


def described(struct: type[msgspec.Struct]) -> dict[str, Any]:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return flatten(info)


def default_words(field: Any) -> str:
    if isinstance(field, inspect.LiteralType) or (isinstance(field, inspect.Field) and field.required):
        return "required"
    if not isinstance(field, inspect.Field):
        return ""
    value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return "none" if value is None else "`" + json.dumps(value, separators=(",", ":")).removesuffix(".0") + "`"


def command_tables() -> list[Any]:
    generation = set(described(Generation))
    cases = [pytest.param(GENERATION, described(Generation), id=GENERATION)]
    for name, command in COMMANDS.items():
        fields = described(command)
        if issubclass(command, Generation):
            fields = {path: field for path, field in fields.items() if path not in generation}
        cases.append(pytest.param(name, fields, id=name))
    return cases


def event_tables() -> list[Any]:
    cases = [pytest.param(tag, described(events.EVENTS[tag]), id=tag) for tag in ("progress", "token", "error")]
    for name, command in COMMANDS.items():
        fields = described(command.done)
        del fields["id"]
        cases.append(pytest.param(SHARED.get(command.done, name), fields, id=f"done of {name}"))
    return cases


@pytest.mark.parametrize(("heading", "fields"), command_tables())
def test_a_command_table_agrees_with_its_struct(heading: str, fields: dict[str, Any]) -> None:
    rows = field_table(heading, "default")
    assert sorted(rows) == sorted(fields)
    for path, field in fields.items():
        kind = field.type if isinstance(field, inspect.Field) else field
        row = rows[path]
        assert set(row["type"].split(" or ")) == type_words(kind), path
        assert row["default"] == default_words(field), path
        assert row["bounds"] == bounds_words(kind), path


@pytest.mark.parametrize(("heading", "fields"), event_tables())
def test_an_event_table_agrees_with_its_struct(heading: str, fields: dict[str, Any]) -> None:
    rows = field_table(heading, "present")
    assert sorted(rows) == sorted(fields)
    for path, field in fields.items():
        kind = field.type if isinstance(field, inspect.Field) else field
        assert set(rows[path]["type"].split(" or ")) == type_words(kind), path
        presence = "" if not isinstance(field, inspect.Field) else "always" if field.required else "sometimes"
        assert rows[path]["present"] == presence, path


def test_every_row_for_people_has_a_meaning() -> None:
    for heading, found in TABLES.items():
        for table in found:
            bare = [row for row in table.rows if "meaning" in row and not row["meaning"]]
            assert all(row["field"].endswith("[]`") for row in bare), heading


def test_the_overview_agrees_with_the_commands() -> None:
    (overview,) = [table for table in TABLES["Commands"] if "out of band" in table.columns]
    rows = overview.by("command")
    assert list(rows) == list(COMMANDS)
    for name, command in COMMANDS.items():
        row = rows[name]
        assert row["out of band"] == ("yes" if command.oob else "no")
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


def test_the_limits_agree() -> None:
    kib, mib = 1024, 1024 * 1024
    (table,) = TABLES["Limits"]
    rows = {what: row["limit"] for what, row in table.by("what").items()}
    assert rows == {
        "line to the worker": f"{limits.LINE_IN_BYTES // mib} MiB",
        "line from the worker, newline included": f"under {limits.LINE_OUT_BYTES // kib} KiB",
        "unfinished requests": f"{limits.REQUESTS:,}",
        "lines of unfinished requests together": f"{limits.QUEUED_BYTES // mib} MiB",
        "id": f"1 to {limits.ID_BYTES} bytes",
        "nesting that always works": "100",
        "integers": "±(2^53-1)",
        "text of one `token` event, in its JSON form": f"{limits.TEXT_BYTES // kib} KiB",
        "token ids of one `token` event": f"{limits.TOKEN_IDS:,}",
        "an error's sentence, in its JSON form": f"{limits.ERROR_BYTES // kib} KiB",
        "progress events": "10 a second for one request",
    }
    named = [row["name"].strip("`") for row in table.rows if row["name"]]
    assert named == list(events.Limits.__struct_fields__)
