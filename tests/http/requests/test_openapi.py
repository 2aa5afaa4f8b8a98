"""The OpenAPI document: valid, complete, and true of what the server does with what follows it and what does not."""

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lmwire_http.app import ENDPOINTS
from lmwire_http.http.openapi import make_document as written
from support.http.http_server import MOCK, Server, served_process
from support.http.raw_http import asked
from support.process.worker_process import SECONDS

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
)
EMPTY = {"openapi": "3.1.1", "info": {"title": "none", "version": "1"}, "paths": {}}
AT_MOST_S = 30
"""A slow machine sends fewer requests."""
SETTINGS = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", "501"]
"""
"""501 is the model's limit, such as images for a model that sees none."""
SAME_BODY = "/v1/messages/count_tokens"
"""It takes what /v1/messages takes, but for the options."""
SAMPLE = ["/health", "/v1/models", "/v1/embeddings"]
"""Paths for each commit, without lists of messages, whose bounds are megabytes. That a body's schema is its Struct's is
tested above."""


@pytest.fixture(scope="module")
def document(mock_server: Server) -> dict[str, Any]:
    return asked(mock_server.url, "GET", "/openapi.json").json


@pytest.fixture(scope="module")
def validate() -> Callable[[dict[str, Any]], None]:
    """Load the library that validates a document.

    pytest parses each of its modules, and Python 3.11 fails at that if a garbage collection in between logs a
    traceback, which parses code, too: https://github.com/python/cpython/issues/106905
    """
    gc.disable()
    try:
        import schemathesis  # half a second, which each process of a run would spend when it collects the tests

        schemathesis.openapi.from_dict(EMPTY)  # it imports the rest
    finally:
        gc.enable()
    return lambda document: schemathesis.openapi.from_dict(document).validate()


def test_the_openapi_document_is_valid(document: dict[str, Any], validate: Callable[[dict[str, Any]], None]) -> None:
    assert document["openapi"] == "3.1.1"
    validate(document)


def test_an_invalid_openapi_document_is_detected(
    document: dict[str, Any], validate: Callable[[dict[str, Any]], None]
) -> None:
    wrong = {**document, "paths": {"/health": {"get": {"responses": {"200": {"headers": 1}}}}}}
    with pytest.raises(Exception, match="is a required property"):
        validate(wrong)


def test_the_openapi_document_has_every_endpoint(document: dict[str, Any]) -> None:
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(endpoint.method, endpoint.path.replace(":path", "")) for endpoint in ENDPOINTS}
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)


def test_a_body_is_its_structs_schema(document: dict[str, Any]) -> None:
    chat = document["paths"]["/v1/chat/completions"]["post"]
    body = resolved(document, chat["requestBody"]["content"]["application/json"]["schema"])
    assert body["required"] == ["messages"]
    assert "additionalProperties" not in body
    answer = chat["responses"]["200"]["content"]
    assert set(answer) == {"application/json", "text/event-stream"}
    event = answer["text/event-stream"]["schema"]["properties"]["data"]["anyOf"][0]["contentSchema"]
    assert resolved(document, event)["properties"]["choices"]


def test_other_names_of_fields_are_described(document: dict[str, Any]) -> None:
    for endpoint in ENDPOINTS:
        if endpoint.aliases:
            operation = document["paths"][endpoint.path][endpoint.method.lower()]
            fields = resolved(document, operation["requestBody"]["content"]["application/json"]["schema"])["properties"]
            assert all(fields[alias]["description"] for alias in endpoint.aliases)
    fields = document["components"]["schemas"]["ChatRequest"]["properties"]
    assert fields["repeat_penalty"]["anyOf"] == [fields["repetition_penalty"], {"type": "null"}]
    assert fields["repeat_penalty"]["description"] == "Another name of `repetition_penalty`."
    assert fields["cache_prompt"] == {"description": "Set `cache`: `on` for true, `off` for false."}


@pytest.mark.parametrize(
    ("limit", "is_valid"),
    [
        ({"max_tokens": 1}, True),
        ({"max_completion_tokens": 1}, True),
        ({}, False),
        ({"max_completion_tokens": None}, False),
    ],
)
def test_another_name_can_stand_for_a_required_field(document: dict[str, Any], limit: Any, is_valid: bool) -> None:
    schema = {"$ref": "#/components/schemas/MessagesRequest", "components": document["components"]}
    body = {"model": "mock", "messages": [{"role": "user", "content": "Hi"}], **limit}
    assert Draft202012Validator(schema).is_valid(body) == is_valid


def test_the_openapi_document_allows_unknown_fields(document: dict[str, Any]) -> None:
    assert {"ChatRequest", "TextPart", "MessagesRequest"} <= schemas_that_allow_more(document)
    assert {"NamedToolChoice", "JsonSchema"}.isdisjoint(schemas_that_allow_more(document))
    strict = written(ENDPOINTS, needs_key=False, strict=True)
    assert {"ChatRequest", "TextPart", "MessagesRequest"}.isdisjoint(schemas_that_allow_more(strict))


def test_a_file_is_sent_as_it_is_in_a_form(document: dict[str, Any]) -> None:
    operation = document["paths"]["/v1/audio/transcriptions"]["post"]
    form = resolved(document, operation["requestBody"]["content"]["multipart/form-data"]["schema"])
    assert form["properties"]["file"] == {"type": "string", "format": "binary"}
    assert "timestamp_granularities[]" in form["properties"]


@pytest.mark.parametrize(
    ("path", "envelope"), [("/v1/chat/completions", ["error"]), ("/v1/messages", ["error", "request_id"])]
)
def test_an_error_is_its_apis(document: dict[str, Any], path: str, envelope: list[str]) -> None:
    refused = resolved(document, document["paths"][path]["post"]["responses"]["400"])
    assert resolved(document, refused["content"]["application/json"]["schema"])["required"] == envelope


def test_the_429_of_messages_has_a_retry_after_header(document: dict[str, Any]) -> None:
    refused = resolved(document, document["paths"]["/v1/messages"]["post"]["responses"]["429"])
    assert set(refused["headers"]) == {"x-request-id", "retry-after"}


def test_the_openapi_document_requires_keys_if_the_server_does(document: dict[str, Any]) -> None:
    assert document["security"] == []
    keyed = written(ENDPOINTS, needs_key=True, strict=False)
    assert keyed["security"] == [{"bearer": []}, {"x-api-key": []}]
    assert keyed["paths"]["/health"]["get"]["security"] == []
    assert "security" not in keyed["paths"]["/metrics"]["get"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "paths",
    [
        [f"--include-path={path}" for path in SAMPLE],
        pytest.param([f"--exclude-path={SAME_BODY}"], marks=pytest.mark.nightly),
    ],
    ids=["some", "all"],
)
def test_right_and_wrong_requests_are_answered_as_it_says(tmp_path: Path, paths: list[str]) -> None:
    """Each field by itself at its bounds and beyond, left out, and of another type; every method at every path."""
    with served_process("mock", "--context-len", "64", "--worker", MOCK) as server:
        document = asked(server.url, "GET", "/openapi.json").json
        for schema in bodies(document):
            schema["properties"]["model"] = {"enum": ["mock", None]}  # any other is answered with 404 alone
        file = tmp_path / "openapi.json"
        file.write_text(json.dumps(document))
        (tmp_path / "schemathesis.toml").write_text(SETTINGS)
        # With several threads, CPython 3.11's ast module fails now and then: recursion depth mismatch.
        options = ["--url", server.url, "--checks", ",".join(CHECKS), "--phases", "coverage", "--workers", "1"]
        options += ["--generation-deterministic", "--continue-on-failure", "--no-color"]
        options += [*paths, "--max-time", str(AT_MOST_S), "--request-timeout", str(SECONDS)]
        command = [sys.executable, "-m", "schemathesis.cli", "run", str(file), *options]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "Traceback" not in "".join(server.log)


def bodies(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of all request bodies."""
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    contents = [operation["requestBody"]["content"] for operation in operations if "requestBody" in operation]
    return [resolved(document, media["schema"]) for content in contents for media in content.values()]


def schemas_that_allow_more(document: dict[str, Any]) -> set[str]:
    """Return the names of the schemas whose objects may have unknown fields."""
    schemas = document["components"]["schemas"]
    return {name for name, schema in schemas.items() if schema.get("additionalProperties") is not False}


def resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a reference."""
    _, _, *names = schema["$ref"].split("/")
    found = document["components"]
    for name in names:
        found = found[name]
    return found
