"""The page on the protocol's fields, made from protocol/schema."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from schema_tables import cell, fields_table, heading

INTRODUCTION = """# Fields of the protocol

Each command and event with its fields, from the [JSON Schema](https://github.com/lmwire/lmwire/tree/main/protocol/schema).
[The protocol](../PROTOCOL.md) explains them. A field may be sent to a worker whose `hello` has at least the version
of its column *since*, or lists the feature that stands there.
"""


def make_page(repository: Path) -> str:
    """Return the page in Markdown."""
    folder = repository / "protocol" / "schema" / "v1"
    definitions = json.loads((folder / "schema.json").read_text(encoding="utf-8"))["$defs"]
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    return "\n".join(_sections(definitions, meta))


def _sections(definitions: dict[str, Any], meta: dict[str, Any]) -> Iterator[str]:
    named: set[str] = {"Command", "Event"}
    yield INTRODUCTION
    for title, part in (("Commands", "commands"), ("Events", "events"), ("Replies", "done")):
        yield f"\n## {title}\n"
        for name, described in meta[part].items():
            struct = name if name in definitions else _struct_name(name)
            if struct not in definitions:
                continue  # `done`, whose kinds are the replies
            named.add(struct)
            yield f"{heading(struct)}\n{f'`{name}`: ' if name != struct else ''}{cell(described['description'])}\n"
            fields = described["fields"]
            yield fields_table(definitions[struct], lambda field, fields=fields: _since(fields.get(field, {})))
    yield "\n## Parts\n"
    for name in sorted(definitions.keys() - named):
        yield f"{heading(name)}\n{cell(definitions[name].get('description', ''))}\n"
        yield fields_table(definitions[name])
    yield "\n## Errors\n\n| code | retry | meaning |\n| --- | --- | --- |"
    for code, described in meta["errors"].items():
        yield f"| `{code}` | {'yes' if described['retryable'] else 'no'} | {cell(described['meaning'])} |"


def _struct_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _since(field: Mapping[str, Any]) -> str:
    features = field.get("features", ())
    return ", ".join(f"`{feature}`" for feature in features) or field.get("since", "")
