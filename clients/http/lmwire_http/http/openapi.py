"""The OpenAPI document, generated from the endpoints and their Structs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, Final, Union, cast, get_args, get_origin

import msgspec

from lmwire_protocol import __version__
from lmwire_protocol.json_value import JsonValue

from .context import RequestContext
from .endpoint import Endpoint, Plain
from .error_formats import OPENAI_ERRORS
from .response_writer import NDJSON, SSE
from .unknown_fields import CHECKED_WHOLE, IGNORED_FIELDS_HEADER, Alias, renamed_field

_PATH_PARAM: Final = re.compile(r"\{(?P<name>\w+)(?::\w+)?\}")
_SCHEMA_REF: Final = "#/components/schemas/{name}"
_COMPONENT: Final = re.compile(r'"#/components/schemas/([^"]+)"')
_REQUEST_ID: Final = {"x-request-id": {"$ref": "#/components/headers/x-request-id"}}
_RETRY_AFTER: Final = {"retry-after": {"$ref": "#/components/headers/retry-after"}}
_IGNORED_FIELDS: Final = {IGNORED_FIELDS_HEADER: {"$ref": f"#/components/headers/{IGNORED_FIELDS_HEADER}"}}
_RETRYABLE: Final = (429, 503)
_HEADERS: Final = {
    "x-request-id": {
        "description": "The request's own X-Request-ID, or a generated one. It is also in the log.",
        "required": True,
        "schema": {"type": "string"},
    },
    IGNORED_FIELDS_HEADER: {
        "description": "The unknown fields of the request that were ignored, with commas between them.",
        "schema": {"type": "string"},
    },
    "retry-after": {"description": "Seconds after which to retry.", "schema": {"type": "integer", "minimum": 1}},
}
_SECURITY_SCHEMES: Final = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key."},
    "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "An API key."},
}
_ERROR_DESCRIPTIONS: Final = {
    400: "A header, the body, or a field of the body is invalid.",
    401: "An API key is needed.",
    403: "The web page's origin is not allowed, or the Host is not a name of this server.",
    404: "The model or object does not exist.",
    408: "The body did not arrive in time.",
    409: "Requests use the model.",
    413: "The body is too long.",
    415: "The body has another media type, character encoding or compression.",
    429: "Too many requests are waiting.",
    500: "The server or the model's process failed on this request.",
    501: "The model or its worker does not support the request.",
    502: "The tool or its MCP server failed.",
    503: "The model's process has exited or cannot start, or the server is stopping.",
    504: "The request exceeded its time limit.",
    507: "The request, or the model, takes more memory than there is.",
}
_ERRORS_OF_ALL: Final = (400, 403, 500)
_ERRORS_OF_MODELS: Final = (401, 404, 429, 501, 503, 504, 507)
_ERRORS_OF_BODIES: Final = (408, 413, 415)


def make_document_endpoint(endpoints: Sequence[Endpoint]) -> Endpoint:
    """Return an endpoint that serves the document of these endpoints and of itself."""

    @cache
    def encoded(needs_key: bool, strict: bool) -> bytes:
        return msgspec.json.encode(make_document([*endpoints, itself], needs_key=needs_key, strict=strict))

    async def serve(context: RequestContext, _: None) -> Plain:
        settings = context.state.settings
        return Plain(encoded(bool(settings.api_keys), settings.strict), "application/json")

    itself = Endpoint(
        method="GET",
        path="/openapi.json",
        summary="Return this document.",
        handler=serve,
        response_type=dict[str, Any],
        is_public=True,
    )
    return itself


def make_document(endpoints: Sequence[Endpoint], *, needs_key: bool, strict: bool) -> dict[str, Any]:
    """Return the OpenAPI document of these endpoints.

    Args:
        endpoints: The documented endpoints.
        needs_key: Whether the server requires an API key.
        strict: Whether the server refuses unknown fields.
    """
    types = dict.fromkeys(type for endpoint in endpoints for type in _schema_types(endpoint))
    # Add the members of a union one by one: msgspec requires the members of one union to be distinguishable.
    members = dict.fromkeys(member for type in types for member in _union_members(type))
    schemas, components = msgspec.json.schema_components(members, ref_template=_SCHEMA_REF)
    if not strict:
        _allow_unknown_fields(components)
    schema_of_member = dict(zip(members, schemas, strict=True))
    schema_of = {type: _any_of([schema_of_member[member] for member in _union_members(type)]) for type in types}
    bodies = [schema_of[each.request_type] for each in endpoints if each.request_type is not None and not each.is_form]
    _allow_nulls(bodies, components)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        if endpoint.aliases:
            _add_aliases(components[_component_name(schema_of[endpoint.request_type])], endpoint.aliases)
        if endpoint.is_form:
            _convert_to_form(components[_component_name(schema_of[endpoint.request_type])])
        path = _PATH_PARAM.sub(r"{\g<name>}", endpoint.path)
        operations, method = paths.setdefault(path, {}), endpoint.method.lower()
        operation = _operation(endpoint, schema_of)
        if endpoint.required_header:
            operation = _either(operations[method], operation, endpoint.required_header)
        operations[method] = operation
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "lmwire",
            "version": __version__,
            "summary": "Models on this machine, with the OpenAI, Anthropic and Ollama APIs.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "security": [{name: []} for name in _SECURITY_SCHEMES] if needs_key else [],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": _error_responses(endpoints, schema_of),
            "headers": _HEADERS,
            "securitySchemes": _SECURITY_SCHEMES,
        },
    }


def _schema_types(endpoint: Endpoint) -> Iterator[Any]:
    yield from (
        type
        for type in (endpoint.request_type, endpoint.response_type, endpoint.event_type, endpoint.line_type)
        if type is not None
    )
    yield from endpoint.status_types.values()
    yield endpoint.error_format.error_type


def _union_members(type: Any) -> tuple[Any, ...]:
    return get_args(type) if isinstance(type, UnionType) or get_origin(type) is Union else (type,)


def _any_of(schemas: list[Any]) -> Any:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _operation(endpoint: Endpoint, schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    name = re.sub(r"\W+", "_", _PATH_PARAM.sub(r"\g<name>", endpoint.path)).strip("_")
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}_{name}",
        "summary": endpoint.summary,
        "responses": _responses(endpoint, schema_of),
    }
    if names := _PATH_PARAM.findall(endpoint.path):
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ]
    if endpoint.request_type is not None:
        media = "multipart/form-data" if endpoint.is_form else "application/json"
        operation["requestBody"] = {"required": True, "content": {media: {"schema": schema_of[endpoint.request_type]}}}
    if endpoint.is_public:
        operation["security"] = []
    return operation


def _either(plain: dict[str, Any], variant: dict[str, Any], header: str) -> dict[str, Any]:
    """Return the operation of two endpoints with the same path and method.

    Args:
        plain: The operation without the header.
        variant: The operation with it.
        header: The header's name.
    """
    content, other = (each["responses"]["200"]["content"]["application/json"] for each in (plain, variant))
    content["schema"] = _any_of([content["schema"], other["schema"]])
    return {**plain, "description": f"The second format is that of requests with the header `{header}`."}


def _responses(endpoint: Endpoint, schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    headers = _REQUEST_ID if endpoint.request_type is None else _REQUEST_ID | _IGNORED_FIELDS
    success = {"description": "The response.", "headers": headers, "content": _success_content(endpoint, schema_of)}
    errors = {
        str(status): _reference("responses", _error_name(endpoint, status)) for status in _error_statuses(endpoint)
    }
    others = {
        str(status): {
            "description": "The negative answer.",
            "headers": _REQUEST_ID,
            "content": {"application/json": {"schema": schema_of[type]}},
        }
        for status, type in endpoint.status_types.items()
    }
    return {"200": success, **errors, **others}


def _error_responses(endpoints: Sequence[Endpoint], schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the error responses, which many endpoints share."""
    return {
        _error_name(endpoint, status): {
            "description": _ERROR_DESCRIPTIONS[status],
            "headers": _REQUEST_ID | _RETRY_AFTER if status in _RETRYABLE else _REQUEST_ID,
            "content": {"application/json": {"schema": schema_of[endpoint.error_format.error_type]}},
        }
        for endpoint in endpoints
        for status in _error_statuses(endpoint)
    }


def _error_name(endpoint: Endpoint, status: int) -> str:
    return f"{endpoint.error_format.error_type.__name__}{status}"


def _reference(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}


def _success_content(endpoint: Endpoint, schema_of: Mapping[Any, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if endpoint.response_type is not None:
        content["application/json"] = {"schema": schema_of[endpoint.response_type]}
    for media in endpoint.text_media_types:
        content[media] = {"schema": {"type": "string"}}
    if endpoint.event_type is not None:
        content[SSE] = {"schema": _event_schema(schema_of[endpoint.event_type], endpoint)}
    if endpoint.line_type is not None:
        content[NDJSON] = {"schema": schema_of[endpoint.line_type]}
    return content


def _event_schema(data: Any, endpoint: Endpoint) -> dict[str, Any]:
    """Return the schema of a server-sent event. OpenAPI 3.1 has no keyword for streams; 3.2 has itemSchema."""
    encoded: dict[str, Any] = {"type": "string", "contentMediaType": "application/json", "contentSchema": data}
    if endpoint.error_format is OPENAI_ERRORS:
        encoded = {"anyOf": [encoded, {"const": "[DONE]", "description": "The last event of some streams."}]}
    return {
        "type": "object",
        "description": "A server-sent event.",
        "properties": {"event": {"type": "string"}, "data": encoded},
        "required": ["data"],
    }


def _error_statuses(endpoint: Endpoint) -> list[int]:
    statuses: set[int] = {*_ERRORS_OF_ALL, *endpoint.error_statuses}
    if not endpoint.is_public:
        statuses.update(_ERRORS_OF_MODELS)
    if endpoint.request_type is not None:
        statuses.update(_ERRORS_OF_BODIES)
    return sorted(statuses)


def _allow_nulls(bodies: list[Any], components: dict[str, Any]) -> None:
    """Let the optional fields of request bodies, and of what is in them, be null, which means absent.

    Args:
        bodies: The schemas of the bodies.
        components: The components, which change.
    """
    found: set[str] = set()
    following: list[dict[str, Any]] = list(bodies)
    while following:
        schema = following.pop()
        properties: dict[str, Any] = schema.get("properties", {})
        following += [part for name, part in properties.items() if name not in CHECKED_WHOLE]
        for name in properties.keys() - set(schema.get("required", ())):
            properties[name] = _or_null(properties[name])
        following += schema.get("anyOf", ())
        if isinstance(items := schema.get("items"), dict):
            following.append(cast(dict[str, Any], items))
        if "$ref" in schema and (name := _component_name(schema)) not in found:
            found.add(name)
            following.append(components[name])


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a field that may be null, too. Its description and its default stay outside."""
    if not schema or any(member.get("type") == "null" for member in schema.get("anyOf", [schema])):
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    outside = {name: schema[name] for name in ("description", "default") if name in schema}
    inside = {name: value for name, value in schema.items() if name not in outside}
    return {**outside, "anyOf": [inside, {"type": "null"}]}


def _component_name(schema: Mapping[str, str]) -> str:
    """Return the name of the component that a schema refers to."""
    return schema["$ref"].rpartition("/")[2]


def _add_aliases(schema: dict[str, Any], aliases: Mapping[str, Alias]) -> None:
    """Add the other names of fields to the schema of a request body. Null counts as absent."""
    fields = schema["properties"]
    for name, alias in aliases.items():
        if field := renamed_field(alias):
            fields[name] = {
                "anyOf": [fields[field], {"type": "null"}],
                "description": f"Another name of `{field}`.",
            }
            _require_either(schema, field, name)
        else:
            fields[name] = {"description": (alias.__doc__ or "").partition("\n")[0]}


def _require_either(schema: dict[str, Any], field: str, name: str) -> None:
    """Let another name stand for a required field."""
    if field in schema.get("required", ()):
        schema["required"].remove(field)
        given = {"required": [name], "properties": {name: {"not": {"type": "null"}}}}
        schema.setdefault("allOf", []).append({"anyOf": [{"required": [field]}, given]})


def _convert_to_form(schema: dict[str, Any]) -> None:
    """Change a schema from JSON to a form: files are not base64, and the names of lists end with `[]`."""
    schema["properties"] = {
        f"{name}[]" if _is_list(field) else name: _without_base64(field) for name, field in schema["properties"].items()
    }


def _allow_unknown_fields(components: Mapping[str, dict[str, Any]]) -> None:
    """Change the schemas of request bodies so that they allow fields which the server ignores."""
    checked: set[str] = set()
    for schema in components.values():
        for name in CHECKED_WHOLE & schema.get("properties", {}).keys():
            _add_references(schema["properties"][name], components, checked)
    for name, schema in components.items():
        if name not in checked and schema.get("additionalProperties") is False:
            del schema["additionalProperties"]


def _add_references(schema: Any, components: Mapping[str, Any], found: set[str]) -> None:
    """Add the names of all components that a schema refers to."""
    for name in _COMPONENT.findall(msgspec.json.encode(schema).decode()):
        if name not in found:
            found.add(name)
            _add_references(components[name], components, found)


def _is_list(field: Mapping[str, Any]) -> bool:
    return any(each.get("type") == "array" for each in field.get("anyOf", [field]))


def _without_base64(schema: JsonValue) -> Any:
    if isinstance(schema, list):
        return [_without_base64(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("contentEncoding") == "base64":
        return {"type": "string", "format": "binary"}
    return {name: _without_base64(value) for name, value in schema.items()}
