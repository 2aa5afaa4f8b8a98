"""Every command, event, field and value of schema.json has its `since` in meta.json."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from lmwire_protocol import CODES, COMMANDS, DONE_CMD, FEATURES
from support.protocol import prose

FOLDER: Final = prose.ROOT / "protocol" / "schema" / "v1"
SCHEMA: Final[dict[str, Any]] = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))
META: Final[dict[str, Any]] = json.loads((FOLDER / "meta.json").read_text(encoding="utf-8"))
ENVELOPE: Final = {"id", "cmd", "event"}
"""Members of every line, which are as old as the protocol."""


def described() -> list[Any]:
    """Return each command, event and form of `done`: its definition in the schema, and its entry in meta.json."""
    titles = {
        **{command.__name__: META["commands"][name] for name, command in COMMANDS.items()},
        **{
            kind["title"]: META["events"][kind["properties"]["event"]["const"]]
            for kind in SCHEMA["$defs"].values()
            if "event" in kind.get("properties", {}) and kind["title"] not in META["done"]
        },
        **META["done"],
    }
    return [pytest.param(SCHEMA["$defs"][title], entry, id=title) for title, entry in titles.items()]


def paths(definition: dict[str, Any], path: str = "") -> Iterator[tuple[str, str | None]]:
    """Yield every field below a definition, and every value that it names."""
    if reference := definition.get("$ref"):
        yield from paths(SCHEMA["$defs"][reference.rpartition("/")[2]], path)
    for choice in (*definition.get("anyOf", ()), *definition.get("oneOf", ())):
        yield from paths(choice, path)
    for value in (*definition.get("enum", ()), *([definition["const"]] if "const" in definition else ())):
        yield path, value if isinstance(value, str) else json.dumps(value)
    for name, member in definition.get("properties", {}).items():
        if path or name not in ENVELOPE:
            inner = f"{path}.{name}" if path else name
            yield inner, None
            yield from paths(member, inner)
    if isinstance(extra := definition.get("additionalProperties"), dict) and path and extra:
        yield f"{path}.*", None
    for items in (definition.get("items"), *definition.get("prefixItems", ())):
        if isinstance(items, dict):
            yield from paths(items, f"{path}[]")


@pytest.mark.parametrize(("definition", "entry"), described())
def test_every_field_and_value_has_its_since(definition: dict[str, Any], entry: dict[str, Any]) -> None:
    assert entry["since"] in META["revisions"]
    values = {(path, value) for path, value in paths(definition) if value is not None and path != "code"}
    fields = {path for path, value in paths(definition) if value is None}
    assert {path for path in entry["fields"] if path not in ENVELOPE} == fields
    listed = {(path, value) for path, field in entry["fields"].items() for value in field.get("values", ())}
    assert {(path, value) for path, value in listed if path not in ENVELOPE} == values
    parts = [entry, *entry["fields"].values()]
    parts += [value for field in entry["fields"].values() for value in field.get("values", {}).values()]
    assert all(part["since"] in META["revisions"] for part in parts)


def test_every_error_code_has_its_since() -> None:
    assert {code for code, facts in META["errors"].items() if facts["since"] in META["revisions"]} == set(CODES)


def test_every_feature_is_that_of_a_newer_part_of_its_command() -> None:
    needed: dict[str, set[str]] = {}
    for name, command in META["commands"].items():
        parts = [command, *command["fields"].values()]
        for group in ("values", "forms"):
            parts += [value for field in command["fields"].values() for value in field.get(group, {}).values()]
        for part in parts:
            assert ("features" in part) == (part["since"] != META["revisions"][0])
            needed.setdefault(name, set()).update(part.get("features", ()))
    assert set().union(*needed.values()) == set(FEATURES) - {DONE_CMD}
    for name, features in needed.items():
        assert all(feature.partition(".")[0] == name for feature in features)


def test_the_only_feature_of_events_is_the_command_in_every_done() -> None:
    fields = {
        (form, name): field
        for group in ("events", "done")
        for form, entry in META[group].items()
        for name, field in entry["fields"].items()
        if "features" in field
    }
    assert set(fields) == {(form, "cmd") for form in ("done", *META["done"])}
    assert all(field == {"since": META["revisions"][1], "features": [DONE_CMD]} for field in fields.values())


@pytest.mark.parametrize(
    ("command", "path", "value", "features"),
    [
        ("chat", "messages", None, None),
        ("chat", "messages[].role", "user", None),
        ("chat", "messages[].role", "tool", ["chat.messages.role.tool"]),
        ("chat", "messages[].content[].text", None, None),
        (
            "chat",
            "messages[].content[].media.url",
            None,
            ["chat.messages.content.image", "chat.messages.content.audio"],
        ),
        ("generate", "format.schema", None, ["generate.format"]),
        ("tokenize", "messages[].tool_calls", None, ["tokenize"]),
        ("tokenize", "reasoning", "off", ["tokenize.reasoning"]),
        ("cancel", "all", "true", None),
        ("chat", "messages[].tool_calls[].function.name", None, ["chat.messages.tool_calls.function"]),
        ("tokenize", "messages[].content[].image_url", None, ["tokenize.messages.content.image_url"]),
        ("chat", "messages[].content[].type", "image_url", ["chat.messages.content.image_url"]),
    ],
)
def test_what_a_worker_must_list(command: str, path: str, value: str | None, features: list[str] | None) -> None:
    field = META["commands"][command]["fields"][path]
    assert (field if value is None else field["values"][value]).get("features") == features


@pytest.mark.parametrize(
    ("command", "path", "form"),
    [
        ("generate", "stop", "string"),
        ("chat", "stop", "string"),
        ("load", "path", "absent"),
        ("chat", "messages[].tool_call_id", "absent"),
        ("tokenize", "messages[].tool_call_id", "absent"),
    ],
)
def test_a_newer_form_of_a_field_is_a_feature(command: str, path: str, form: str) -> None:
    entry = META["commands"][command]["fields"][path]["forms"][form]
    condition = {"when": {"role": "tool"}} if "tool_call_id" in path else {}
    features = [f"{command}.{path.replace('[]', '')}.{form}"]
    assert entry == {"since": META["revisions"][1], "features": features, **condition}
