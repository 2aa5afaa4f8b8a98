"""The page on the HTTP server's endpoints, made from its OpenAPI document."""

from collections.abc import Iterator, Mapping
from typing import Any

from lmwire_http.app import ENDPOINTS
from lmwire_http.http.openapi import make_document
from schema_tables import cell, fields_table, heading, type_name

INTRODUCTION = """# HTTP endpoints

Each endpoint of `lmwire serve`, from the document that it serves at `/openapi.json`.
[The HTTP server](../docs/http-server.md) explains them.
"""


def make_page() -> str:
    """Return the page in Markdown."""
    return "\n".join(_sections(make_document(ENDPOINTS, needs_key=True, strict=False)))


def _sections(document: Mapping[str, Any]) -> Iterator[str]:
    yield INTRODUCTION
    yield "\n## Endpoints\n"
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield f"\n### {method.upper()} {path}\n\n{cell(operation['summary'])}\n"
            yield from _types("Body", operation.get("requestBody", {}).get("content", {}))
            yield from _types("Answer", operation["responses"].get("200", {}).get("content", {}))
    yield "\n## Types\n"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield f"{heading(name)}\n{cell(schema.get('description', ''))}\n"
        yield fields_table(schema)


def _types(title: str, content: Mapping[str, Any]) -> Iterator[str]:
    for media_type, described in content.items():
        yield f"{title}: {type_name(described.get('schema', {}))} as `{media_type}`\n"
