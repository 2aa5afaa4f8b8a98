"""The OpenAPI document, made of the endpoints and their Structs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from lmwire_protocol import __version__

from .call import Call
from .endpoint import Endpoint
from .replies import Plain

_VARIABLE: Final = re.compile(r"\{(?P<name>\w+)(?::\w+)?\}")
_REF: Final = "#/components/schemas/{name}"
_REQUEST_ID: Final = {"x-request-id": {"$ref": "#/components/headers/x-request-id"}}
_RETRY_AFTER: Final = {"retry-after": {"$ref": "#/components/headers/retry-after"}}
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
    400: "The body, or a field of it, is wrong.",
    401: "An API key is needed.",
    403: "The page that asks may not.",
    404: "There is no such model, or no such thing.",
    408: "The body did not come.",
    413: "The body is too long.",
    415: "The body is no form.",
    429: "Too many requests wait.",
    500: "The server, or the model's process, failed on this request.",
    503: "The model's process has ended, is not there, or is ending.",
    504: "The request took longer than it may.",
}
_OF_MODELS: Final = (401, 403, 404, 429, 503, 504)
_OF_BODIES: Final = (400, 408, 413)


def document_endpoint(endpoints: Sequence[Endpoint]) -> Endpoint:
    """Serves the document of these endpoints."""

    @cache
    def written(keyed: bool) -> bytes:
        return msgspec.json.encode(document(endpoints, keyed=keyed))

    async def serve(call: Call, _: None) -> Plain:
        return Plain(written(bool(call.service.settings.api_keys)), "application/json")

    return Endpoint(method="GET", path="/openapi.json", summary="This document.", serve=serve, reply=Any, open=True)


def document(endpoints: Sequence[Endpoint], *, keyed: bool) -> dict[str, Any]:
    """The OpenAPI document of these endpoints; `keyed` is whether an API key is needed."""
    types = dict.fromkeys(type for endpoint in endpoints for type in _types(endpoint))
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    schema_of = dict(zip(types, schemas, strict=True))
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
        "components": {"schemas": components, "headers": _HEADERS, "securitySchemes": _KEYS},
    }


def _types(endpoint: Endpoint) -> Iterator[Any]:
    yield from (type for type in (endpoint.body, endpoint.reply, endpoint.events) if type is not None)
    yield from endpoint.statuses.values()
    yield endpoint.dialect.error


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
    error = {"application/json": {"schema": schema_of[endpoint.dialect.error]}}
    responses = {"200": {"description": "The answer.", "headers": _REQUEST_ID, "content": _answer(endpoint, schema_of)}}
    for status in _refusals(endpoint):
        retried = status in (429, 503)
        responses[str(status)] = {
            "description": _REFUSALS[status],
            "headers": _REQUEST_ID | _RETRY_AFTER if retried else _REQUEST_ID,
            "content": error,
        }
    for status, type in endpoint.statuses.items():
        content = {"application/json": {"schema": schema_of[type]}}
        responses[str(status)] = {"description": "It is not so.", "headers": _REQUEST_ID, "content": content}
    return responses


def _answer(endpoint: Endpoint, schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if endpoint.reply is not None:
        content["application/json"] = {"schema": schema_of[endpoint.reply]}
    for media in endpoint.texts:
        content[media] = {"schema": {"type": "string"}}
    if endpoint.events is not None:
        # OpenAPI 3.1 has no words for what a stream consists of; 3.2 calls it itemSchema.
        content["text/event-stream"] = {
            "schema": {"type": "string", "description": "Server-sent events. x-itemSchema is of each one's data."},
            "x-itemSchema": schema_of[endpoint.events],
        }
    return content


def _refusals(endpoint: Endpoint) -> list[int]:
    statuses = {500}
    if not endpoint.open:
        statuses.update(_OF_MODELS)
    if endpoint.body is not None:
        statuses.update(_OF_BODIES)
    if endpoint.form:
        statuses.add(415)
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
