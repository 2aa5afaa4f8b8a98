"""Ollama's API on the wire: lines of JSON, the fields of Ollama's own types, errors, and probes."""

import json
from collections.abc import Iterator
from typing import Any

import ollama
import pytest

from support.http.http_server import MOCK, Server, served
from support.http.ollama_http import MODEL, WEATHER, client, user
from support.http.raw_http import Answer, RawClient, asked

NDJSON = "application/x-ndjson"
END = ["total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"]


def post(server: Server, path: str, body: Any, **headers: str) -> Answer:
    return asked(server.url, "POST", path, body, **headers)


def lines(answer: Answer) -> list[Any]:
    assert answer.headers["content-type"] == NDJSON
    return [json.loads(line) for line in answer.body.splitlines()]


def chat(content: str, **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [user(content)], **fields}


@pytest.mark.parametrize(("path", "body"), [("/api/chat", chat("to be")), ("/api/generate", {"prompt": "to be"})])
def test_a_request_that_does_not_say_gets_a_stream_of_lines(mock_server: Server, path: str, body: Any) -> None:
    *parts, last = lines(post(mock_server, path, {"model": MODEL, **body}))
    assert parts
    content = "message" if path == "/api/chat" else "response"
    assert all(set(part) == {"model", "created_at", "done", content} for part in parts)
    context = () if path == "/api/chat" else ("context",)
    assert set(last) == {"model", "created_at", "done", "done_reason", content, *END, *context}
    assert last["created_at"].endswith("Z")
    assert all(type(last[name]) is int for name in END)


def test_a_whole_answer_is_one_object(mock_server: Server) -> None:
    answer = post(mock_server, "/api/chat", chat("to be", stream=False))
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.json["message"] == {"role": "assistant", "content": "to be"}
    assert set(answer.json) == {"model", "created_at", "done", "done_reason", "message", *END}


def test_calls_have_ids_and_objects(scripted_server: Server) -> None:
    body = chat("weather everywhere", tools=[WEATHER], stream=False)
    assert post(scripted_server, "/api/chat", body).json["message"] == {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "call_rome", "function": {"index": 0, "name": "weather", "arguments": {"city": "Rome"}}},
            {"id": "call_oslo", "function": {"index": 1, "name": "weather", "arguments": {"city": "Oslo"}}},
        ],
    }


def test_curls_own_media_type_is_taken_but_not_from_other_pages(mock_server: Server) -> None:
    form = {"content_type": "application/x-www-form-urlencoded"}
    assert post(mock_server, "/api/chat", chat("to be", stream=False), **form).status == 200
    assert post(mock_server, "/api/chat", chat("to be"), origin="http://evil.example", **form).status == 403
    assert post(mock_server, "/v1/chat/completions", chat("to be"), **form).status == 415
    assert post(mock_server, "/api/chat", chat("to be"), content_type="text/plain").status == 415


def test_options_of_ollamas_runner_are_ignored_and_named(mock_server: Server) -> None:
    answer = post(mock_server, "/api/chat", chat("to be", options={"num_ctx": 8192, "num_gpu": 1}, shift=True))
    assert answer.status == 200
    assert answer.headers["x-lmwire-ignored-fields"] == "options.num_ctx, options.num_gpu, shift"


def test_a_prompt_over_the_context_is_shortened_unless_the_client_forbids_it() -> None:
    long = "so " * 3000 + "end"
    requests: dict[str, Any] = {"/api/chat": {"messages": [user(long)]}, "/api/generate": {"prompt": long, "raw": True}}
    with served("--worker", MOCK, "--context-len", "2000") as server:
        for path, fields in requests.items():
            body = {"model": MODEL, "stream": False, **fields}
            assert post(server, path, body).json["prompt_eval_count"] == 1500
            refused = post(server, path, body | {"truncate": False})
            assert (refused.status, "`truncate`" in refused.json["error"]) == (400, True)


def test_strict_servers_refuse_them() -> None:
    with served("--strict", "--worker", MOCK) as server:
        answer = post(server, "/api/chat", chat("to be", options={"num_ctx": 8192}))
    assert (answer.status, answer.json) == (400, {"error": "options.num_ctx: Object contains unknown field `num_ctx`"})


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [user("x", images=[1])]}, "messages[0].images[0]"),
        ({"messages": [user("x"), {"role": "assistant", "tool_calls": [{}]}]}, "messages[1].tool_calls[0].function"),
        ({"tools": [{"function": {}}]}, "tools[0].function.name"),
        ({"format": "yaml"}, "format"),
        ({"think": "very"}, "think"),
        ({"options": {"temperature": -1}}, "options.temperature"),
        ({"options": {"top_p": -0.1}}, "options.top_p"),
        ({"options": {"repeat_penalty": -1}}, "options.repeat_penalty"),
        ({"options": {"num_predict": -3}}, "options.num_predict"),
        ({"options": {"stop": [""]}}, "options.stop[0]"),
        ({"options": {"stop": "x" * 2000}}, "options.stop[0]"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"top_logprobs": 21, "logprobs": True}, "top_logprobs"),
        ({"max_tokens": 5}, "max_tokens"),
    ],
)
def test_a_wrong_field_is_named_as_the_client_wrote_it(scripted_server: Server, fields: Any, named: str) -> None:
    answer = post(scripted_server, "/api/chat", {**chat("hello"), **fields})
    assert answer.status == 400
    assert list(answer.json) == ["error"]
    assert answer.json["error"].replace("`", "").startswith(f"{named}: ")


@pytest.mark.slow
def test_a_schema_that_cannot_be_enforced_is_the_format(tiny_server: Server) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": "one"}}}
    answer = post(tiny_server, "/api/chat", chat("hello", model="builtin:tiny", format=schema))
    assert answer.status == 400
    assert answer.json["error"].startswith("`format.properties.age.minimum`: ")


@pytest.mark.parametrize(("content", "status"), [("busy", 429), ("breaks at once", 500)])
@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_before_the_first_line_has_a_status(
    scripted_server: Server, content: str, status: int, stream: bool
) -> None:
    answer = post(scripted_server, "/api/chat", chat(content, stream=stream))
    assert (answer.status, list(answer.json)) == (status, ["error"])


def test_a_later_failure_is_the_last_line(scripted_server: Server) -> None:
    first, *_, last = lines(post(scripted_server, "/api/chat", chat("breaks later")))
    assert (first["message"]["content"], list(last)) == ("Half", ["error"])
    with pytest.raises(ollama.ResponseError):
        list(client(scripted_server).chat(MODEL, [user("breaks later")], stream=True))


@pytest.mark.slow
def test_a_model_that_is_not_served_is_not_found(tiny_server: Server) -> None:
    for path, fields in (
        ("chat", {"messages": [user("x")]}),
        ("generate", {"prompt": "x"}),
        ("show", {}),
        ("embed", {}),
    ):
        answer = post(tiny_server, f"/api/{path}", {"model": "llama3.2", **fields})
        assert (answer.status, "not found" in answer.json["error"]) == (404, True), path


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/push"),
        ("POST", "/api/create"),
        ("POST", "/api/copy"),
        ("DELETE", "/api/delete"),
        ("POST", "/api/blobs/sha256:0000"),
    ],
)
def test_what_only_ollama_does_is_refused_with_what_to_do(mock_server: Server, method: str, path: str) -> None:
    answer = asked(mock_server.url, method, path, {"model": MODEL})
    assert (answer.status, list(answer.json)) == (501, ["error"])
    assert "here" in answer.json["error"]


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/api/nothing", {}, 404),
        ("GET", "/api/chat", {}, 405),
        ("GET", "/api/tags", {"origin": "http://evil.example"}, 403),
        ("GET", "/api/tags", {"host": "evil.example"}, 403),
    ],
)
def test_other_errors_have_ollamas_form_too(
    mock_server: Server, method: str, path: str, headers: Any, status: int
) -> None:
    answer = asked(mock_server.url, method, path, **headers)
    assert (answer.status, list(answer.json)) == (status, ["error"])


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """Serve with an API key and a short limit of bodies."""
    with served("--worker", MOCK, "--api-key", "secret", "--max-body", "1M") as server:
        yield server


def test_a_key_is_needed_except_for_probes(guarded: Server) -> None:
    assert asked(guarded.url, "GET", "/").body == b"Ollama is running"
    assert asked(guarded.url, "GET", "/api/version").status == 200
    refused = asked(guarded.url, "GET", "/api/tags")
    assert (refused.status, list(refused.json)) == (401, ["error"])
    keyed = ollama.Client(host=guarded.url, headers={"authorization": "Bearer secret"})
    assert keyed.chat(MODEL, [user("to be")]).message.content == "to be"


def test_a_body_that_is_too_long_or_not_json_is_refused(guarded: Server, mock_server: Server) -> None:
    long = post(guarded, "/api/chat", chat("x" * 2_000_000), authorization="Bearer secret")
    assert (long.status, list(long.json)) == (413, ["error"])
    broken = post(mock_server, "/api/chat", b"{", content_type="application/json")
    assert (broken.status, broken.json["error"].startswith("the body is not JSON")) == (400, True)


def test_clients_find_out_that_the_api_is_here(mock_server: Server) -> None:
    assert asked(mock_server.url, "GET", "/").body == b"Ollama is running"
    for path in ("/", "/api/version", "/api/tags"):
        with RawClient(mock_server.url) as raw:
            raw.ask("HEAD", path)
            assert raw.answer(head=True).status == 200
    version = asked(mock_server.url, "GET", "/api/version").json["version"]
    assert [int(part) for part in version.split(".")] >= [0, 6, 4]


def test_a_client_that_disconnects_ends_its_answer(gated_server: Server) -> None:
    with RawClient(gated_server.url) as raw:
        raw.ask("POST", "/api/chat", chat("say one and wait"))
        assert b"One" in raw.read_until(b'"done":false') + raw.read_until(b"}\n")
    gated_server.wait_for_line(r"path=/api/chat status=499")
    gated_server.wait_for("lmwire_worker_requests_active", 0)


def test_requests_are_counted_by_path_and_model(mock_server: Server) -> None:
    labels = {"path": "/api/chat", "model": MODEL, "status": "200"}
    before = mock_server.figure("lmwire_http_requests_total", **labels)
    post(mock_server, "/api/chat", chat("to be"))
    mock_server.wait_for("lmwire_http_requests_total", before + 1, **labels)
