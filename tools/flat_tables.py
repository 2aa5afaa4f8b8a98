"""Write the flat tables of limits, events and features: files that programs include or read, and those of two hosts.

    python tools/flat_tables.py [--check]

The files protocol/schema/v1/*.inc have one row a line, as calls of a macro: C includes them, and other languages read
them with one pattern. clients/c/lmwire.c is one file, and users of the Neovim plugin have its folder alone, so each has
a copy. With --check nothing is written.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCE = REPOSITORY / "clients/c/lmwire.c"
LUA = REPOSITORY / "examples/neovim/lua/lmwire/event_forms.lua"
SCHEMA = REPOSITORY / "protocol/schema/v1"
BEGIN = "/* Begin of the tables that tools/flat_tables.py writes: `make schema`. */\n/* clang-format off */\n"
END = "/* clang-format on */\n/* End of the tables. */\n"
LIMITS = ("line_in_bytes", "queued_bytes", "client_line_bytes", "banner_bytes")
"""Limits that the C host needs."""
TYPES = {"string": "s", "integer": "i", "number": "n", "boolean": "b", "array": "l", "object": "o"}
HEADS = {
    "limits": "LIMIT(name, value): the limits.",
    "events": """\
DONE(command, form): the form of each command's `done`.
   MEMBER(form, path, types, required): a member of an event. The form is the event, or that of a `done`. Types are
   letters: s string, i integer, n number, b boolean, l list, o object. Required: present wherever the object around
   it is.""",
    "features": """\
FEATURE(command, path, part, when, features): what is newer than 1.0. A part is a value of the field, `=` and a form,
   or empty. `when` is a member beside the field without which the part does not count, or empty. A host sends it if
   the worker lists one of the features.""",
}
"""The first comment of each file."""
Json = dict[str, Any]
Row = tuple[str | int, ...]


def main(arguments: list[str]) -> int:
    """Write or check the tables. Return 1 if a check finds a difference."""
    schema = json.loads((SCHEMA / "schema.json").read_text(encoding="utf-8"))["$defs"]
    meta = json.loads((SCHEMA / "meta.json").read_text(encoding="utf-8"))
    written = {SOURCE: c_source(schema, meta), LUA: lua_source(schema, meta), **flat_files(schema, meta)}
    stale = [file for file, text in written.items() if not file.is_file() or file.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for file in stale:
            print(f"{file.name} differs from protocol/schema; run `make schema`", file=sys.stderr)
        return 1 if stale else 0
    for file in stale:
        file.write_text(written[file], encoding="utf-8")
    return 0


def flat_files(schema: Json, meta: Json) -> dict[Path, str]:
    """Return the files with one row a line."""
    rows = {
        "limits": [("LIMIT", limit) for limit in _limits(meta)],
        "events": [("DONE", form) for form in _done_forms(meta)] + [("MEMBER", member) for member in _members(schema)],
        "features": [("FEATURE", feature) for feature in _features(meta["commands"])],
    }
    return {
        SCHEMA / f"{name}.inc": f"/* {HEADS[name]} */\n"
        + "".join(f"{macro}({_cells(row)})\n" for macro, row in rows[name])
        for name in rows
    }


def c_source(schema: Json, meta: Json) -> str:
    """Return the C host's source with its copy of the tables."""
    before, _, rest = SOURCE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    limits = [f"#define {str(name).upper()} {value}\n" for name, value in _limits(meta) if name in LIMITS]
    reasons = ", ".join(f'"{reason}"' for reason in schema["ResultDone"]["properties"]["finish_reason"]["enum"])
    return "".join(
        [
            before,
            BEGIN,
            *limits,
            f"static const char *const FINISH_REASONS[] = {{{reasons}}};\n",
            "\n/* The form of each `done`, by command. */\n",
            "static const struct { const char *command, *form; } DONE_FORMS[] = {\n",
            *_lines(_done_forms(meta)),
            "};\n\n/* Members of events: form, path, types as letters, and whether it is always present. */\n",
            "static const struct { const char *form, *path, *types; bool required; } MEMBERS[] = {\n",
            *_lines(_members(schema)),
            "};\n\n/* What is newer than 1.0: command, path, part (a value, `=` and a form, or empty), a member\n",
            " * beside it without which it does not count, and the features, of which one must be listed. */\n",
            "static const struct { const char *command, *path, *part, *when, *features; } FEATURES[] = {\n",
            *_lines(_features(meta["commands"])),
            "};\n",
            END,
            after,
        ]
    )


def lua_source(schema: Json, meta: Json) -> str:
    """Return the Neovim plugin's module with the forms of events."""
    return "".join(
        [
            "-- tools/flat_tables.py writes this file: `make schema`.\n",
            "local M = {}\n",
            "\n-- The form of each `done`, by command.\n",
            "M.DONES = {\n",
            *(f'  {command} = "{form}",\n' for command, form in _done_forms(meta)),
            "}\n",
            "\nM.EVENTS = {\n",
            *(f"  {event} = true,\n" for event in dict.fromkeys(event for event, _ in _events(schema))),
            "}\n",
            "\n-- Members of events: form, path, types as letters, and 1 if it is always present. The form is the\n",
            "-- event, or that of a `done`. Letters: s string, i integer, n number, b boolean, l list, o object.\n",
            "M.MEMBERS = {\n",
            *(f"  {{ {_cells(row)} }},\n" for row in _members(schema)),
            "}\n",
            "\nreturn M\n",
        ]
    )


def _cells(row: Row) -> str:
    return ", ".join(f'"{cell}"' if isinstance(cell, str) else str(cell) for cell in row)


def _limits(meta: Json) -> Iterator[Row]:
    for name, limit in meta["limits"].items():
        value = limit["value"]
        yield from (
            ((f"{name}.{key}", part) for key, part in value.items()) if isinstance(value, dict) else [(name, value)]
        )


def _done_forms(meta: Json) -> Iterator[Row]:
    for name, command in meta["commands"].items():
        yield name, command["done"]


def _lines(rows: Iterable[Row]) -> Iterator[str]:
    """Put as many rows into a line as fit."""
    line = ""
    for row in (f"{{{_cells(row)}}}" for row in rows):
        if line and len(line) + len(row) > 112:
            yield f"    {line}\n"
            line = ""
        line += f"{' ' if line else ''}{row},"
    yield f"    {line}\n"


def _members(schema: Json) -> Iterator[Row]:
    for event, definition in _events(schema):
        form = definition["title"] if event == "done" else event
        for path, types, required in _walk(schema, definition, ""):
            if path not in ("event", "id", "cmd"):
                yield form, path, types, int(required)


def _events(schema: Json) -> Iterator[tuple[str, Json]]:
    for reference in schema["Event"]["anyOf"]:
        definition = schema[_name(reference)]
        yield definition["properties"]["event"]["const"], definition


def _walk(schema: Json, definition: Json, path: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the path, the types and the presence of each member, at any depth."""
    for name, member in definition.get("properties", {}).items():
        yield from _value(schema, member, f"{path}{name}", name in definition.get("required", []))


def _value(schema: Json, member: Json, path: str, required: bool) -> Iterator[tuple[str, str, bool]]:
    while "$ref" in member:
        member = schema[_name(member)]
    forms = member.get("anyOf", [member])
    types = "".join(TYPES[form.get("type", "string")] for form in forms)
    yield path, types, required
    for form in forms:
        yield from _walk(schema, form, f"{path}.")
        if "items" in form:
            yield from _value(schema, form["items"], f"{path}[]", True)


def _name(reference: Json) -> str:
    return reference["$ref"].rpartition("/")[2]


def _features(commands: Json) -> Iterator[Row]:
    for command, described in commands.items():
        if features := described.get("features"):
            yield command, "", "", "", " ".join(features)
        needs_of = {"": features, **{path: field.get("features") for path, field in described["fields"].items()}}
        for path, field in described["fields"].items():
            features = field.get("features")
            # What its command or the object around it needs too is checked there.
            around = [needs_of.get(path[: dot.start()].rstrip("[]")) for dot in re.finditer(r"\.", path)]
            if features and features not in (needs_of[""], *around):
                yield command, path, "", "", " ".join(features)
            for kind, mark in (("values", ""), ("forms", "=")):
                for part, needs in field.get(kind, {}).items():
                    if needs.get("features") and needs["features"] != features:
                        when = " ".join(f"{name}={value}" for name, value in needs.get("when", {}).items())
                        yield command, path, mark + part, when, " ".join(needs["features"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
