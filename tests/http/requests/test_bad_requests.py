"""A client's mistake is never a failure of the server: whatever is sent, the answer blames the request."""

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from lmwire import RequestFailed
from lmwire_http.app import ENDPOINTS
from lmwire_http.errors import api_error
from lmwire_protocol import CODES, events
from support.http.http_server import Server
from support.http.raw_http import CHAT, Answer, asked

pytestmark = pytest.mark.slow

COMPLETIONS, RESPONSES, MESSAGES = "/v1/completions", "/v1/responses", "/v1/messages"
TRANSCRIPTIONS: Final = "/v1/audio/transcriptions"
BODIES: Final = [endpoint for endpoint in ENDPOINTS if endpoint.request_type is not None]
MODEL: Final = "builtin:tiny"

TREE: Final = {
    "type": "object",
    "properties": {"value": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["value", "children"],
    "additionalProperties": False,
}
IMMENSE: Final = "((a{1000}){1000}){1000}"
DEEP: Final = 100_000

PROMPTS: Final = {
    CHAT: {"messages": [{"role": "user", "content": "x"}], "max_tokens": 8, "reasoning_effort": "none"},
    COMPLETIONS: {"prompt": "x", "max_tokens": 8},
    RESPONSES: {"input": "x", "max_output_tokens": 8, "reasoning": {"effort": "none"}},
    MESSAGES: {
        "messages": [{"role": "user", "content": "x"}],
        "max_tokens": 8,
        "thinking": {"type": "disabled"},
    },
    f"{MESSAGES}/count_tokens": {"messages": [{"role": "user", "content": "x"}]},
    "/v1/embeddings": {"input": "x"},
    "/v1/tokenize": {"prompt": "x"},
    "/v1/detokenize": {"tokens": [1]},
}


def send(server: Server, path: str, **fields: Any) -> Answer:
    return asked(server.url, "POST", path, {"model": MODEL, **PROMPTS[path], **fields})


def blamed(answer: Answer) -> str:
    assert 400 <= answer.status < 500 or answer.status == 501, answer
    assert answer.json["error"]["type"] == "invalid_request_error"
    return answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("path", "fields", "sentence"),
    [
        (
            CHAT,
            {"messages": [{"role": "critic", "content": "x"}]},
            "messages[0].role: Invalid value 'critic'; must be system, ",
        ),
        (CHAT, {"response_format": {"type": "xml"}}, "'xml'; must be text, json_object, json or json_schema"),
        (
            CHAT,
            {"response_format": {"type": "json_schema", "json_schema": {"type": "object"}}},
            "json_schema.type: Object contains unknown field `type`; it takes name, description, schema and strict",
        ),
        (CHAT, {"cache": "always"}, "cache: Invalid enum value 'always'; must be off, on or pin"),
        (MESSAGES, {"messages": [{"role": "critic", "content": "x"}]}, "; must be "),
    ],
    ids=["role", "type", "field", "word", "Anthropic's role"],
)
def test_a_word_or_a_field_that_is_not_taken_gets_those_that_are(
    mock_server: Server, path: str, fields: dict[str, Any], sentence: str
) -> None:
    assert sentence in blamed(send(mock_server, path, **fields))


# What a worker finds out only when it computes.


def immense(path: str) -> dict[str, Any]:
    """A format that compiles, and of which the first token finds that it is too large."""
    schema = {"type": "json_schema", "schema": {"type": "string", "pattern": f"^{IMMENSE}$"}}
    if path == MESSAGES:
        return {"output_config": {"format": schema}}
    return {"format": {"type": "regex", "pattern": IMMENSE}}


@pytest.mark.nightly  # test_chat_unsupported_fields.py tries the same expression with chat completions
@pytest.mark.parametrize("path", [COMPLETIONS, RESPONSES, MESSAGES])
def test_a_format_that_is_too_large_is_the_requests_fault(tiny_server: Server, path: str) -> None:
    blamed(send(tiny_server, path, **immense(path)))


@pytest.mark.nightly  # test_responses_stream.py tests how each API names this error of a worker
@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
def test_a_format_that_is_too_large_is_the_requests_fault_in_a_stream(tiny_server: Server, path: str) -> None:
    answer = send(tiny_server, path, stream=True, **immense(path))
    if answer.status != 200:
        blamed(answer)
        return
    assert (b"invalid_prompt" if path == RESPONSES else b"invalid_request") in answer.body
    assert b"server_error" not in answer.body


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"schema": TREE}}}),
        (RESPONSES, {"text": {"format": {"type": "json_schema", "schema": TREE}}}),
        (MESSAGES, {"output_config": {"format": {"type": "json_schema", "schema": TREE}}}),
        (
            CHAT,
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": TREE}}], "tool_choice": "required"},
        ),
    ],
)
def test_a_recursive_schema_is_followed_or_refused(tiny_server: Server, path: str, fields: dict[str, Any]) -> None:
    answer = send(tiny_server, path, **fields)
    assert answer.status == 200 or blamed(answer)


@pytest.mark.parametrize("code", sorted(CODES))
def test_what_the_worker_blames_on_the_request_is_blamed_on_it_in_every_dialect(code: str) -> None:
    fault_of_server = {"engine_error", "internal", "bad_model", "worker_lost"}
    event = events.Error(id="1", error="field: it is wrong", code=code, retryable=False, field="field")
    error = api_error(RequestFailed(event))
    if code in {"invalid_request", "unsupported", "context_overflow"}:
        assert error.status == 400
    assert (error.status == 507) == (code == "out_of_memory")
    if error.status >= 500 and error.status not in {503, 504, 507}:
        assert code in fault_of_server | {"unknown_command", "duplicate_id", "parse_error", "unsupported_protocol"}
    for endpoint in BODIES:
        assert b"it is wrong" in msgspec.json.encode(endpoint.error_format.body(error, "req_1"))


# What no field can be.


def bodies(path: str) -> Iterator[tuple[str, bytes]]:
    """Bodies that are wrong, or odd, in every way that JSON allows, or does not."""
    one_token = {name: 1 for name in PROMPTS[path] if name in {"max_tokens", "max_output_tokens"}}
    whole = {"model": MODEL, **PROMPTS[path], **one_token}
    first, *_ = [name for name in PROMPTS[path] if name in {"messages", "prompt", "input", "tokens"}]
    start = json.dumps({name: value for name, value in whole.items() if name != first})[:-1].encode()
    for name, value in {
        "half a surrogate pair": rb'"\ud800"',
        "the other half": rb'"\udfff x"',
        "a zero": rb'"\u0000"',
        "nested lists": b"[" * DEEP + b"]" * DEEP,
        "nested objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        "an open list": b"[" * DEEP,
        "a number of 5,000 digits": b"9" * 5000,
        "a number beyond any": b"1e999",
        "no number": b"NaN",
        "infinity": b"-Infinity",
        "null": b"null",
        "no UTF-8": b'"\xff\xfe"',
        "an empty list": b"[]",
        "a list of lists": b"[[[]]]",
        "an empty object": b"{}",
    }.items():
        yield f"{name} as {first}", start + b',"' + first.encode() + b'":' + value + b"}"
        yield f"{name} as a field", json.dumps(whole)[:-1].encode() + b',"metadata":{"a":' + value + b"}}"
        yield f"{name} as the model", json.dumps(whole)[:-1].encode() + b',"model":' + value + b"}"
        yield f"{name} as a stop", json.dumps(whole)[:-1].encode() + b',"stop":[' + value + b"]}"
        yield f"{name} as a tool", json.dumps(whole)[:-1].encode() + b',"tools":[' + value + b"]}"
        yield (
            f"{name} in tools",
            (
                json.dumps(whole)[:-1].encode() + b',"tools":[{"type":"function","function":{"name":"f","parameters":'
                b'{"type":"object","properties":{"a":' + value + b"}}}}]}"
            ),
        )
        yield (
            f"{name} as a schema",
            (json.dumps(whole)[:-1].encode() + b',"format":{"type":"json_schema","schema":' + value + b"}}"),
        )
        yield f"{name} alone", value
    for name, arguments in {"nested": "[" * DEEP, "half a pair": '{"a":"\ud800"}', "a number": "9" * 5000}.items():
        turn: dict[str, Any] = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
        call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": arguments}
        said = [call] if path == RESPONSES else [{"role": "assistant", "tool_calls": [turn]}]
        yield f"arguments: {name}", json.dumps({**whole, first: said}).encode()
    yield "a member twice", json.dumps(whole)[:-1].encode() + b',"model":"none","model":"' + MODEL.encode() + b'"}'
    yield "UTF-16", json.dumps(whole).encode("utf-16")
    yield "a byte order mark", b"\xef\xbb\xbf" + json.dumps(whole).encode()
    yield "gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
    yield "nothing", b""


@pytest.mark.parametrize("path", PROMPTS)
def test_no_body_is_a_failure_of_the_server(tiny_server: Server, path: str) -> None:
    failed = {}
    for name, body in bodies(path):
        answer = asked(tiny_server.url, "POST", path, body)
        if (answer.status >= 500 and answer.status != 501) or (
            answer.status != 200 and "message" not in answer.json["error"]
        ):
            failed[name] = answer
    assert not failed
    assert "Traceback" not in "".join(tiny_server.log)


@pytest.mark.parametrize(
    "headers",
    [
        {"content_encoding": "br"},
        {"content_encoding": "br, gzip"},
        {"content_type": "text/plain"},
        {"content_type": "application/xml"},
        {"content_type": "\xff"},
        {"content_type": "multipart/form-data; boundary=x"},
    ],
)
@pytest.mark.parametrize("path", [*PROMPTS, TRANSCRIPTIONS])
def test_a_body_of_another_kind_is_refused_before_it_is_read(
    tiny_server: Server, path: str, headers: dict[str, str]
) -> None:
    if path == TRANSCRIPTIONS and "multipart/form-data" in headers.get("content_type", ""):
        headers = {"content_encoding": "br", **headers}
    answer = asked(tiny_server.url, "POST", path, b"{}", **headers)
    assert (answer.status, "the body must" in answer.json["error"]["message"]) == (415, True)


def part(head: str, content: bytes = b"x") -> bytes:
    return b"--b\r\n" + head.encode("latin-1") + b"\r\n\r\n" + content + b"\r\n"


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=", b"x"),
        ("multipart/form-data; boundary=\xff", b"--x\r\n"),
        ("multipart/form-data; boundary=" + "b" * 300, b"--b\r\n"),
        ("multipart/form-data; boundary=b; charset=none", part('content-disposition: form-data; name="model"')),
        ("multipart/form-data; boundary=b", b""),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\n"),
        ("multipart/form-data; boundary=b", part("content-disposition: form-data")),
        ("multipart/form-data; boundary=b", part("content-disposition: form-data; name=")),
        ("multipart/form-data; boundary=b", part("content-disposition: form-data; name=\"f\"; filename*=utf-8''%ff")),
        ("multipart/form-data; boundary=b", part('content-disposition: form-data; name="model"', b"\xff\xfe")),
        ("multipart/form-data; boundary=b", part('content-disposition: form-data; name="a"') * 2000),
        ("multipart/form-data; boundary=b", part('content-disposition: form-data; name="temperature"', b"1e999")),
    ],
)
@pytest.mark.parametrize("ended", [b"", b"--b--\r\n"])
def test_an_invalid_form_is_refused(tiny_server: Server, media_type: str, body: bytes, ended: bytes) -> None:
    answer = asked(tiny_server.url, "POST", TRANSCRIPTIONS, body + ended, content_type=media_type)
    assert blamed(answer)


def test_a_files_name_may_be_anything(tiny_server: Server) -> None:
    form = part('content-disposition: form-data; name="file"; filename="\xff"') + b"--b--\r\n"
    answer = asked(tiny_server.url, "POST", TRANSCRIPTIONS, form, content_type="multipart/form-data; boundary=b")
    assert (answer.status, answer.json["error"]["param"]) == (501, "model")  # the only model, which writes no speech


@pytest.mark.parametrize("name", ["%ff", "%00", "..%2f..%2fetc", "%ed%a0%80", "a%0d%0ab", "x" * 10_000])
@pytest.mark.parametrize("path", ["/v1/models/", "/v1/responses/"])
def test_an_odd_path_is_unknown(tiny_server: Server, path: str, name: str) -> None:
    assert asked(tiny_server.url, "GET", path + name).status == 404
