"""Clients that send nothing, or read nothing: every wait has a limit."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socket import MSG_PEEK

import pytest

from support.http.http_server import MOCK, Server, served
from support.http.raw_http import CHAT, RawClient, chat_body, request
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

POURED = 2_000_000
"""Tokens: more than all buffers between a worker and a client hold."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    script = Path(__file__).parents[1] / "held_answers.json"
    with served("--worker", f"{MOCK} --scenario {script}", "--client-timeout", "1") as server:
        yield server


@pytest.fixture
def crowded_server() -> Iterator[Server]:
    script = Path(__file__).parents[1] / "held_answers.json"
    with served("--worker", f"{MOCK} --scenario {script}", "--max-connections", "3") as server:
        yield server


@pytest.fixture(scope="module")
def slow_server() -> Iterator[Server]:
    """It waits for any byte for long, and for all of a body not."""
    with served("--worker", MOCK, "--body-timeout", "1") as server:
        yield server


def test_a_body_that_stops_coming_is_given_up(server: Server) -> None:
    with RawClient(server.url) as client:
        client.send(request("POST", CHAT, b"{", content_length="100"))
        answer = client.answer()
        assert (answer.status, answer.json["error"]["code"]) == (408, "timeout")
        assert client.at_end()


def test_a_body_that_comes_too_slowly_is_given_up_though_it_never_stops(slow_server: Server) -> None:
    """A byte now and then keeps the other limit, and would hold a connection for days."""
    with RawClient(slow_server.url) as client:
        client.send(request("POST", CHAT, b"{", content_length="1000000"))
        client.socket.settimeout(0.05)
        answered = b""
        while not answered:
            client.send(b" ")
            with suppress(TimeoutError):
                answered = client.socket.recv(1, MSG_PEEK)
        client.socket.settimeout(SECONDS)
        answer = client.answer()
        assert (answer.status, answer.json["error"]["code"]) == (408, "timeout")
        assert "the body was not complete within 1 s" in answer.json["error"]["message"]
        assert client.at_end()


def test_the_body_of_a_refused_request_is_not_read_for_ever(slow_server: Server) -> None:
    with RawClient(slow_server.url) as client:
        client.send(request("POST", "/v1/nothing", b"{", content_length="1000000"))
        assert client.answer().status == 404
        client.send(b" ")
        assert client.at_end()


def test_a_body_that_comes_in_time_is_served() -> None:
    with served("--worker", MOCK, "--body-timeout", str(SECONDS)) as server, RawClient(server.url) as client:
        whole = request("POST", CHAT, chat_body("hello"))
        for start in range(0, len(whole), 16):
            client.send(whole[start : start + 16])
        assert client.answer().status == 200


@pytest.mark.parametrize("partial_head", [b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nhost: loc"])
def test_a_head_that_stops_coming_is_given_up(server: Server, partial_head: bytes) -> None:
    with RawClient(server.url) as client:
        client.send(partial_head)
        assert client.at_end()


def test_a_second_head_that_stops_coming_is_given_up(server: Server) -> None:
    with RawClient(server.url) as client:
        client.send(request("GET", "/health") + b"GET /health HT")
        assert client.answer().status == 200
        assert client.at_end()


def test_a_client_that_reads_nothing_of_its_stream_loses_it(server: Server) -> None:
    with RawClient(server.url) as client:
        client.chat("Hello")  # so that the worker runs, and reports its metrics
        assert client.answer().status == 200
        before = server.figure("lmwire_worker_requests_total", outcome="cancelled")
        client.ask("POST", CHAT, stream_of(POURED), x_request_id="unread")
        assert "status=499" in server.wait_for_line("request_id=unread")
        server.wait_for("lmwire_worker_requests_total", before + 1, outcome="cancelled")


def stream_of(tokens: int) -> dict[str, object]:
    messages = [{"role": "user", "content": "pour"}]
    return {"model": "mock", "messages": messages, "stream": True, "max_tokens": tokens}


# Connections.


def test_the_longest_idle_connection_is_closed_for_a_new_one(crowded_server: Server) -> None:
    """Idle clients can neither lock others out nor use up the server's file descriptors."""
    with RawClient(crowded_server.url) as busy, RawClient(crowded_server.url) as oldest:
        busy.chat("say one and wait", stream=True)
        busy.read_until(b'"content":"One"')
        with RawClient(crowded_server.url) as second:
            for client in (oldest, second):
                client.ask("GET", "/health")
                assert client.answer().status == 200
            with RawClient(crowded_server.url) as newest:
                assert oldest.at_end()
                for client in (newest, second):
                    client.ask("GET", "/health")
                    assert client.answer().status == 200


def test_if_all_connections_are_in_use_a_new_one_is_asked_to_retry(crowded_server: Server) -> None:
    with (
        RawClient(crowded_server.url) as one,
        RawClient(crowded_server.url) as two,
        RawClient(crowded_server.url) as three,
    ):
        for client in (one, two, three):
            client.chat("say one and wait", stream=True)
            client.read_until(b'"content":"One"')
        with RawClient(crowded_server.url) as another:
            answer = another.answer()
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert b"too many connections" in answer.body
            assert another.at_end()
