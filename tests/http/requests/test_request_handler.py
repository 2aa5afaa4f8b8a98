"""One request and its answer, byte by byte: limits, connections that go on, errors before and after a first event."""

import asyncio
import json

import pytest

from lmwire_http.app import ENDPOINTS
from lmwire_http.http.endpoint import Json, Reply
from lmwire_http.server.client_connection import MAX_HEADERS
from support.http.asgi_exchange import exchanged
from support.http.http_server import Server
from support.http.raw_http import CHAT, RawClient, asked, chat_body, request

MESSAGES = "/v1/messages"
PATHS = sorted({endpoint.path for endpoint in ENDPOINTS})
TOO_LONG = 24 * 1024 * 1024 + 1


@pytest.fixture
def url(gated_server: Server) -> str:
    return gated_server.url


def test_a_connection_serves_one_request_after_another(url: str) -> None:
    with RawClient(url) as client:
        for words in ("one", "two"):
            client.chat(words)
            assert client.answer().json["choices"][0]["message"]["content"].strip() == words


def test_pipelined_requests_are_answered_in_turn(url: str) -> None:
    with RawClient(url) as client:
        words = [f"number {number}" for number in range(12)]
        client.send(b"".join([request("POST", CHAT, chat_body(each, stream=bool(len(each) % 2))) for each in words]))
        answers = [client.answer() for _ in words]
    assert [answer.status for answer in answers] == [200] * len(words)
    assert all(f"{number}".encode() in answer.body for number, answer in enumerate(answers))


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_speaks_http_1_0_is_answered(url: str, stream: bool) -> None:
    with RawClient(url) as client:
        client.send(request("POST", CHAT, chat_body("hello", stream=stream)).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
        client.read_until(b" 200 OK\r\n")
        client.read_until(b"hello")


# Bodies.


def test_a_body_that_is_said_to_be_too_long_is_refused_before_it_is_read(url: str) -> None:
    with RawClient(url) as client:
        client.send(request("POST", CHAT, b"{", content_length=str(TOO_LONG)))
        answer = client.answer()
    assert (answer.status, answer.json["error"]["code"]) == (413, "body_too_long")
    assert "25,165,824 bytes" in answer.json["error"]["message"]


def test_a_client_that_sends_a_too_long_body_gets_an_error_and_can_go_on(url: str) -> None:
    with RawClient(url) as client:
        client.send(request("POST", CHAT, b" " * TOO_LONG))
        assert client.answer().status == 413
        client.chat("hello")
        assert client.answer().status == 200


def test_a_body_without_a_length_is_refused_when_it_has_become_too_long(url: str) -> None:
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    with RawClient(url) as client:
        client.send(request("POST", CHAT, transfer_encoding="chunked") + chunk * 25 + b"0\r\n\r\n")
        assert client.answer().status == 413
        client.chat("hello")
        assert client.answer().status == 200


def test_a_body_in_chunks_is_read_whole(url: str) -> None:
    body = json.dumps(chat_body("hello")).encode()
    chunks = b"".join([b"1\r\n%c\r\n" % byte for byte in body]) + b"0\r\n\r\n"
    with RawClient(url) as client:
        client.send(request("POST", CHAT, transfer_encoding="chunked") + chunks)
        assert client.answer().status == 200


def test_a_client_that_expects_100_continue_gets_it(url: str) -> None:
    body = json.dumps(chat_body("hello")).encode()
    with RawClient(url) as client:
        client.send(request("POST", CHAT, content_length=str(len(body)), expect="100-continue"))
        assert client.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        client.send(body)
        assert client.answer().status == 200


@pytest.mark.parametrize(
    "length",
    [{"content_length": "ten"}, {"content_length": "-1"}, {"content_length": "2", "transfer_encoding": "chunked"}],
)
def test_an_invalid_content_length_ends_the_connection(url: str, length: dict[str, str]) -> None:
    with RawClient(url) as client:
        client.send(request("POST", CHAT, b"{}", **length))
        assert client.answer().status == 400
        assert client.at_end()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b'{"tools":[{"type":"function","function":{"parameters":' + b'{"a":' * 100_000, "nested too deeply"),
        (b"[]", "Expected `object`"),
    ],
)
def test_an_invalid_body_is_refused(url: str, body: bytes, words: str) -> None:
    answer = asked(url, "POST", CHAT, body)
    assert answer.status == 400
    assert words in answer.json["error"]["message"]


# Methods and paths.


def test_head_is_get_without_the_body(url: str) -> None:
    whole, head = asked(url, "GET", "/health"), asked(url, "HEAD", "/health")
    assert (head.status, head.headers["content-length"]) == (200, str(len(whole.body)))


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "DELETE", "PUT"])
def test_another_method_is_refused_with_those_that_are_served(url: str, method: str) -> None:
    answer = asked(url, method, CHAT)
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert answer.json["error"]["code"] == "method_not_allowed"


def test_another_path_is_refused_with_those_that_are_served(url: str) -> None:
    answer = asked(url, "GET", "/v1/nothing")
    assert (answer.status, answer.json["error"]["type"]) == (404, "invalid_request_error")
    assert CHAT in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/v1/chat/completion", "did you mean /v1/chat/completions or"),
        ("/v1/embedding", "did you mean /v1/embeddings"),
        ("/v1/message", "did you mean /v1/messages"),
        ("/" + "x" * 5000, "nothing at this path; these are served"),
    ],
)
def test_a_path_with_a_slip_of_the_pen_is_answered_with_the_near_ones(url: str, path: str, meant: str) -> None:
    answer = asked(url, "POST", path, {})
    assert answer.status == 404
    assert meant in answer.json["error"]["message"]


@pytest.mark.parametrize("path", PATHS)
def test_every_path_has_its_forms_and_lists_its_methods(url: str, path: str) -> None:
    methods = {endpoint.method for endpoint in ENDPOINTS if endpoint.path == path}
    allowed = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
    path = path.replace("{model:path}", "mock")
    forms = [path, f"{path.rstrip('/')}/", *([path[3:], f"/v1{path}"] if path.startswith("/v1/") else [])]
    for form in forms:
        answer = asked(url, "PATCH", form)
        assert (form, answer.status, answer.headers["allow"]) == (form, 405, allowed)


@pytest.mark.parametrize(("method", "path", "status"), [("GET", MESSAGES, 405), ("POST", f"{MESSAGES}/batches", 404)])
def test_below_anthropics_path_errors_are_anthropics(url: str, method: str, path: str, status: int) -> None:
    answer = asked(url, method, path)
    assert answer.status == status
    assert (answer.json["type"], answer.json["request_id"]) == ("error", answer.headers["x-request-id"])


# Errors.


def test_an_error_before_the_first_event_is_a_response_of_its_own(url: str) -> None:
    answer = asked(url, "POST", CHAT, chat_body("be busy", stream=True))
    assert (answer.status, answer.headers["content-type"]) == (429, "application/json")
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.json["error"]["type"] == "rate_limit_error"


def test_an_error_after_the_first_event_is_the_last_event_of_the_stream(url: str) -> None:
    with RawClient(url) as client:
        client.chat("say one and fail", stream=True)
        answer = client.answer()
        *_, said, last = answer.body.decode().strip().split("\n\n")
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert "One" in said
        assert json.loads(last.removeprefix("data: "))["error"]["code"] == "engine_error"
        client.chat("hello")
        assert client.answer().status == 200


def test_work_that_somebody_cancelled_is_a_failure_and_no_silence() -> None:
    async def serve(*_: object) -> Reply:
        raise asyncio.CancelledError

    sent = exchanged(serve)
    assert (sent.status, sent.code) == (500, "internal")


def test_an_answer_that_cannot_be_encoded_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def serve(*_: object) -> Reply:
        return Json(object())

    sent = exchanged(serve)
    assert (sent.status, sent.code) == (500, "internal")
    assert "failed with TypeError in" in caplog.text


# The id of a request.


def test_a_requests_own_id_is_returned_and_logged(gated_server: Server) -> None:
    answer = asked(gated_server.url, "POST", CHAT, chat_body("hello"), x_request_id="mine-1")
    assert answer.headers["x-request-id"] == "mine-1"
    assert "status=200" in gated_server.wait_for_line("request_id=mine-1")


@pytest.mark.parametrize("id", ["", "two words", "é", "x" * 129])
def test_a_request_without_a_safe_id_gets_a_generated_one(gated_server: Server, id: str) -> None:
    headers = {"x_request_id": id} if id else {}
    given = asked(gated_server.url, "GET", "/health", **headers).headers["x-request-id"]
    assert given.startswith("req_")
    assert gated_server.wait_for_line(f"request_id={given}")


@pytest.mark.parametrize(("path", "status"), [("/nothing", 404), (CHAT, 405), (f"{MESSAGES}/nothing", 404)])
def test_every_error_has_a_request_id(url: str, path: str, status: int) -> None:
    answer = asked(url, "GET", path, x_request_id="mine-2")
    assert (answer.status, answer.headers["x-request-id"]) == (status, "mine-2")


# What a client finds out in the middle of nothing.


@pytest.mark.parametrize(
    "head",
    [
        b"EHLO localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /health HTTP/1.1\r\nno colon\r\n\r\n",
        b"CONNECT elsewhere:443 HTTP/1.1\r\nhost: elsewhere\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=["no-method", "version", "header", "connect", "http2", "tls"],
)
def test_an_invalid_head_is_refused(url: str, head: bytes) -> None:
    with RawClient(url) as client:
        client.send(head)
        assert client.answer().status == 400
        assert client.at_end()


def test_an_upgrade_is_not_made(url: str) -> None:
    answer = asked(url, "GET", "/health", connection="upgrade", upgrade="websocket", sec_websocket_key="x")
    assert (answer.status, answer.json) == (200, {"status": "ok"})


def test_a_head_without_an_end_is_refused(url: str) -> None:
    with RawClient(url) as client:
        client.send(b"GET /health HTTP/1.1\r\nx-filler: " + b"x" * 70_000)
        assert client.answer().status == 431
        assert client.at_end()


def head(count: int, value: str = "x") -> bytes:
    """Return a head with this many headers."""
    lines = ["GET /health HTTP/1.1", "host: localhost", *(f"x-{number}: {value}" for number in range(count - 1))]
    return "\r\n".join([*lines, "", ""]).encode()


def test_a_request_has_a_limited_number_of_headers(url: str) -> None:
    with RawClient(url) as client:
        client.send(head(MAX_HEADERS))
        assert client.answer().status == 200
        client.send(head(MAX_HEADERS + 1))
        answer = client.answer()
        assert (answer.status, b"over 100 headers" in answer.body) == (431, True)
        assert client.at_end()


def test_a_whole_head_that_arrives_at_once_is_no_longer_than_its_limit(url: str) -> None:
    with RawClient(url) as client:
        client.send(head(MAX_HEADERS, "x" * 900))
        assert client.answer().status == 431
        assert client.at_end()


def test_trailers_of_a_body_count_as_headers(url: str) -> None:
    trailers = b"".join([b"x-%d: x\r\n" % number for number in range(MAX_HEADERS)])
    with RawClient(url) as client:
        client.send(request("POST", CHAT, transfer_encoding="chunked") + b"2\r\n{}\r\n0\r\n" + trailers + b"\r\n")
        assert client.at_end()


def test_for_a_client_that_has_left_no_work_starts() -> None:
    started: list[object] = []

    async def serve(*request: object) -> Reply:
        started.append(request)
        return Json({})

    assert exchanged(serve, leaves=True).status == 0
    assert not started
