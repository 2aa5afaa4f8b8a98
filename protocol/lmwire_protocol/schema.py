"""The protocol as data for other languages: a JSON Schema of every line, and the facts that no schema can express.

Both are generated from the Structs and their docstrings alone. A worker never imports this module.

    python -m lmwire_protocol.schema [--check] [DIR]

writes `schema.json` and `meta.json` into DIR. With --check it compares them and changes nothing.
"""

import argparse
import ast
import inspect
import json
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from . import commands, events, formats, limits, messages, since
from .commands import COMMANDS, Command
from .errors import CLIENT_CODES, CODES, EXIT_CODES
from .json_value import JsonValue
from .schema_conditions import CONDITIONS, Json

_DIRECTORY = Path("protocol/schema/v1")
_DONE_FORMS: Final = tuple(dict.fromkeys(command.done for command in COMMANDS.values()))
_STREAMED: Final = (events.Progress, events.Token, events.ToolCall, events.Embedding, events.Segment, events.Audio)
_EVENTS: Final = (*_STREAMED, *_DONE_FORMS, events.Error)
_MODULES: Final = (
    commands.base,
    commands.session,
    commands.model,
    commands.generation,
    commands.embeddings,
    commands.transcription,
    commands.speech,
    messages,
    formats,
    events.base,
    events.generation,
    events.embeddings,
    events.transcription,
    events.speech,
    events.model,
    events.session,
)
_ID: Final = {"type": "string", "minLength": 1, "maxLength": limits.ID_BYTES}
_ABOUT: Final = (
    "One line of lmwire protocol 1: a Command goes from host to worker, an Event comes back. In both, a member that "
    "is null counts as absent: drop such members before validating. Lengths of strings count bytes of UTF-8, which "
    "a schema can only approach. Commands refuse unknown fields; readers of events ignore them."
)


def schema() -> Json:
    """Return a JSON Schema (draft 2020-12) of every command line and every event line."""
    _, found = msgspec.json.schema_components([*COMMANDS.values(), *_EVENTS], ref_template="#/$defs/{name}")
    docs = {name: fields for module in _MODULES for name, fields in _attribute_docs(module).items()}
    structs = {name: _struct_schema(found[name], struct, docs) for name, struct in _structs().items() if name in found}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:lmwire:protocol:{limits.PROTOCOL_VERSION}",
        "title": f"lmwire protocol {limits.PROTOCOL_VERSION}",
        "description": _ABOUT,
        "anyOf": [_ref("Command"), _ref("Event")],
        "$defs": {
            "Command": {"oneOf": [_ref(command.__name__) for command in COMMANDS.values()]},
            "Event": {"anyOf": [_ref(event.__name__) for event in _EVENTS]},
            "RequestId": {"description": "A request's id, at most 128 bytes.", **_ID},
            **structs,
        },
    }


def meta() -> Json:
    """Return the facts about protocol 1 that are not shapes of lines: limits, codes, and each command's events."""
    return {
        "protocol": limits.PROTOCOL_VERSION,
        "revisions": [since.FIRST, since.CURRENT],
        "max_int": limits.MAX_INT,
        "limits": _limits(),
        "commands": {name: _command_facts(command) for name, command in COMMANDS.items()},
        "events": {tag: _event_facts(event, tag) for tag, event in events.EVENTS.items()},
        "done": {form.__name__: _event_facts(form, form.__name__) for form in _DONE_FORMS},
        "errors": {
            code: {"retryable": retry, "meaning": meaning, "since": since.FIRST}
            for code, (retry, meaning) in CODES.items()
        },
        "client_errors": {code: {"meaning": meaning} for code, meaning in CLIENT_CODES.items()},
        "exit_codes": {str(status): meaning for status, meaning in EXIT_CODES.items()},
    }


def _structs() -> dict[str, type[msgspec.Struct]]:
    """Return every Struct of the protocol by name, in the order of the source."""
    members = [member for module in _MODULES for member in vars(module).values()]
    return {item.__name__: item for item in members if isinstance(item, type) and issubclass(item, msgspec.Struct)}


def _struct_schema(found: Json, struct: type[msgspec.Struct], docs: dict[str, dict[str, str]]) -> Json:
    """Return msgspec's schema of a Struct, completed with the envelope and the docstrings of the fields."""
    fields = {name: text for owner in reversed(struct.__mro__) for name, text in docs.get(owner.__name__, {}).items()}
    properties = {name: _without_null(field) for name, field in found["properties"].items()}
    required = list(found["required"])
    if issubclass(struct, Command):
        properties = {"id": _ref("RequestId"), "cmd": {"const": struct.name}, **properties}
        required = ["id", "cmd", *required]
    elif issubclass(struct, events.Event):
        properties |= {"event": {"const": struct.__struct_config__.tag}, "id": _ref("RequestId")}
    if struct is events.Error:
        properties["code"] = {"enum": list(CODES)}
    made = {"title": found["title"], "description": _description(struct), "type": "object"}
    made["properties"] = {
        name: {"description": fields[name], **field} if name in fields else field for name, field in properties.items()
    }
    if required:
        made["required"] = required
    if conditions := [condition for owner in struct.__mro__ for condition in CONDITIONS.get(owner, [])]:
        made["allOf"] = conditions
    if "additionalProperties" in found:
        made["additionalProperties"] = found["additionalProperties"]
    return made


def _without_null(field: Json) -> Json:
    """Return a field's schema without null, which stands for an absent field everywhere."""
    field = {key: value for key, value in _without_discriminator(field).items() if (key, value) != ("default", None)}
    if choices := [choice for choice in field.pop("anyOf", []) if choice != {"type": "null"}]:
        field = {**choices[0], **field} if len(choices) == 1 else {"anyOf": choices, **field}
    return field


def _without_discriminator(value: JsonValue) -> Any:
    """Return a schema without `discriminator`, which OpenAPI has and JSON Schema lacks."""
    if isinstance(value, dict):
        return {key: _without_discriminator(item) for key, item in value.items() if key != "discriminator"}
    return [_without_discriminator(item) for item in value] if isinstance(value, list) else value


def _command_facts(command: type[Command]) -> Json:
    return {
        "description": _description(command),
        "oob": command.out_of_band,
        "barrier": command.barrier,
        "events": [event.__struct_config__.tag for event in command.streams],
        "done": command.done.__name__,
        **since.of_command(command),
    }


def _event_facts(event: type[events.Event], name: str) -> Json:
    return {"description": _description(event), **since.of_event(event, name)}


def _limits() -> Json:
    docs = _docs_in(_tree(limits).body)
    return {
        name.lower(): {
            "value": value,
            "unit": "bytes" if name.endswith("_BYTES") else "count",
            "description": docs[name],
        }
        for name, value in vars(limits).items()
        if name.isupper() and name not in ("PROTOCOL_VERSION", "MAX_INT")
    }


def _attribute_docs(module: ModuleType) -> dict[str, dict[str, str]]:
    """Return the docstrings of the fields of a module's classes, by class and field."""
    return {node.name: _docs_in(node.body) for node in _tree(module).body if isinstance(node, ast.ClassDef)}


def _docs_in(body: list[ast.stmt]) -> dict[str, str]:
    found: dict[str, str] = {}
    for statement, below in pairwise(body):
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or not isinstance(below, ast.Expr):
            continue
        target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
        if isinstance(target, ast.Name) and isinstance(below.value, ast.Constant):
            found[target.id] = _one_line(str(below.value.value))
    return found


def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def _description(struct: type[msgspec.Struct]) -> str:
    return _one_line(struct.__doc__ or "")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _ref(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


def _files() -> dict[str, str]:
    made = {"schema.json": schema(), "meta.json": meta()}
    return {name: json.dumps(value, indent=2, ensure_ascii=False) + "\n" for name, value in made.items()}


def _outdated(directory: Path, files: dict[str, str]) -> Iterable[Path]:
    for name, text in files.items():
        path = directory / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            yield path


def main(arguments: list[str] | None = None) -> int:
    """Write or check the two files. Return 1 if a check finds a difference."""
    parser = argparse.ArgumentParser(prog="python -m lmwire_protocol.schema", description="Write or check the schema.")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 when a file differs")
    parser.add_argument("dir", nargs="?", type=Path, default=_DIRECTORY, help=f"an existing folder ({_DIRECTORY})")
    options = parser.parse_args(arguments)
    if not options.dir.is_dir():
        parser.error(f"{options.dir} is not a folder; give the folder that contains schema.json")
    files = _files()
    stale = list(_outdated(options.dir, files))
    for path in stale:
        if options.check:
            print(f"{path} differs from the Structs; run `make schema`", file=sys.stderr)
        else:
            path.write_text(files[path.name], encoding="utf-8")
            print(f"wrote {path}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
