"""The OpenAPI document, made of the endpoints and their Structs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import msgspec

from lmwire_protocol import __version__

from .context import Call
from .endpoint import Endpoint
from .error_formats import OPENAI
from .replies import Plain

_VARIABLE: Final = re.compile(r"\{(?P<name>\w+)(?::\w+)?\}")
_REF: Final = "#/components/schemas/{name}"
_REQUEST_ID: Final = {"x-request-id": {"$ref": "#/components/headers/x-request-id"}}
_RETRY_AFTER: Final = {"retry-after": {"$ref": "#/components/headers/retry-after"}}
_RETRIED: Final = (429, 503)
_HEADERS: Final = {
    "x-request-id": {
        "description": "The request's own X-Request-ID, or one that was made for it. It is in the log.",
        "required": True,
        "schema": {"type": "string"},
    },
    "retry-after": {"description": "Seconds after which to ask again.", "schema": {"type": "integer", "minimum": 1}},
}
_KEYS: Final = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key."},
    "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "An API key."},
}
_REFUSALS: Final = {
    400: "A header, the body, or a field of it, is wrong.",
    401: "An API key is needed.",
    403: "The page that asks may not, or the Host is no name of this server.",
    404: "There is no such model, or no such thing.",
    408: "The body did not come.",
    413: "The body is too long.",
    415: "The body is of another media type, or compressed.",
    429: "Too many requests wait.",
    500: "The server, or the model's process, failed on this request.",
    503: "The model's process has ended, is not there, or is ending.",
    504: "The request took longer than it may.",
}
_OF_ALL: Final = (400, 403, 500)
_OF_MODELS: Final = (401, 404, 429, 503, 504)
_OF_BODIES: Final = (408, 413, 415)


def document_endpoint(endpoints: Sequence[Endpoint]) -> Endpoint:
    """Serves the document of these endpoints, and of itself."""

    @cache
    def written(keyed: bool) -> bytes:
        return msgspec.json.encode(document([*endpoints, itself], keyed=keyed))

    async def serve(call: Call, _: None) -> Plain:
        return Plain(written(bool(call.service.settings.api_keys)), "application/json")

    itself = Endpoint(
        method="GET", path="/openapi.json", summary="This document.", serve=serve, reply=dict[str, Any], open=True
    )
    return itself


def document(endpoints: Sequence[Endpoint], *, keyed: bool) -> dict[str, Any]:
    """The OpenAPI document of these endpoints; `keyed` is whether an API key is needed."""
    types = dict.fromkeys(type for endpoint in endpoints for type in _types(endpoint))
    # Each of a union's types by itself: together they would have to be told apart when read, which these are not.
    members = dict.fromkeys(member for type in types for member in _members(type))
    schemas, components = msgspec.json.schema_components(members, ref_template=_REF)
    schema_of_member = dict(zip(members, schemas, strict=True))
    schema_of = {type: _any_of([schema_of_member[member] for member in _members(type)]) for type in types}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        if endpoint.form:
            _write_as_form(components[schema_of[endpoint.body]["$ref"].rpartition("/")[2]])
        path = _VARIABLE.sub(r"{\g<name>}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, schema_of)
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "lmwire",
            "version": __version__,
            "summary": "Models on this machine, in OpenAI's and Anthropic's shapes.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "security": [{name: []} for name in _KEYS] if keyed else [],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": _all_refusals(endpoints, schema_of),
            "headers": _HEADERS,
            "securitySchemes": _KEYS,
        },
    }


def _types(endpoint: Endpoint) -> Iterator[Any]:
    yield from (type for type in (endpoint.body, endpoint.reply, endpoint.events) if type is not None)
    yield from endpoint.statuses.values()
    yield endpoint.dialect.error


def _members(type: Any) -> tuple[Any, ...]:
    return get_args(type) if isinstance(type, UnionType) or get_origin(type) is Union else (type,)


def _any_of(schemas: list[Any]) -> Any:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _operation(endpoint: Endpoint, schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    name = re.sub(r"\W+", "_", _VARIABLE.sub(r"\g<name>", endpoint.path)).strip("_")
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}_{name}",
        "summary": endpoint.summary,
        "responses": _responses(endpoint, schema_of),
    }
    if names := _VARIABLE.findall(endpoint.path):
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ]
    if endpoint.body is not None:
        media = "multipart/form-data" if endpoint.form else "application/json"
        operation["requestBody"] = {"required": True, "content": {media: {"schema": schema_of[endpoint.body]}}}
    if endpoint.open:
        operation["security"] = []
    return operation


def _responses(endpoint: Endpoint, schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    answered = {"description": "The answer.", "headers": _REQUEST_ID, "content": _answer(endpoint, schema_of)}
    refused = {str(status): _reference("responses", _refusal_name(endpoint, status)) for status in _refusals(endpoint)}
    told = {
        str(status): {
            "description": "It is not so.",
            "headers": _REQUEST_ID,
            "content": {"application/json": {"schema": schema_of[type]}},
        }
        for status, type in endpoint.statuses.items()
    }
    return {"200": answered, **refused, **told}


def _all_refusals(endpoints: Sequence[Endpoint], schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    """The errors, which many endpoints share."""
    return {
        _refusal_name(endpoint, status): {
            "description": _REFUSALS[status],
            "headers": _REQUEST_ID | _RETRY_AFTER if status in _RETRIED else _REQUEST_ID,
            "content": {"application/json": {"schema": schema_of[endpoint.dialect.error]}},
        }
        for endpoint in endpoints
        for status in _refusals(endpoint)
    }


def _refusal_name(endpoint: Endpoint, status: int) -> str:
    return f"{endpoint.dialect.error.__name__}{status}"


def _reference(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}


def _answer(endpoint: Endpoint, schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if endpoint.reply is not None:
        content["application/json"] = {"schema": schema_of[endpoint.reply]}
    for media in endpoint.texts:
        content[media] = {"schema": {"type": "string"}}
    if endpoint.events is not None:
        content["text/event-stream"] = {"schema": _event(schema_of[endpoint.events], endpoint)}
    return content


def _event(data: Any, endpoint: Endpoint) -> dict[str, Any]:
    """Each server-sent event, for which OpenAPI 3.1 has no word; 3.2 has itemSchema."""
    encoded: dict[str, Any] = {"type": "string", "contentMediaType": "application/json", "contentSchema": data}
    if endpoint.dialect is OPENAI:
        encoded = {"anyOf": [encoded, {"const": "[DONE]", "description": "The last one's, of some."}]}
    return {
        "type": "object",
        "description": "Each of the server-sent events.",
        "properties": {"event": {"type": "string"}, "data": encoded},
        "required": ["data"],
    }


def _refusals(endpoint: Endpoint) -> list[int]:
    statuses: set[int] = set(_OF_ALL)
    if not endpoint.open:
        statuses.update(_OF_MODELS)
    if endpoint.body is not None:
        statuses.update(_OF_BODIES)
    return sorted(statuses)


def _write_as_form(schema: dict[str, Any]) -> None:
    """A form has files as they are, where JSON would have base64, and lists under names that end so."""
    schema["properties"] = {
        f"{name}[]" if _is_list(field) else name: _unencoded(field) for name, field in schema["properties"].items()
    }


def _is_list(field: Mapping[str, Any]) -> bool:
    return any(each.get("type") == "array" for each in field.get("anyOf", [field]))


def _unencoded(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_unencoded(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("contentEncoding") == "base64":
        return {"type": "string", "format": "binary"}
    return {name: _unencoded(value) for name, value in schema.items()}
