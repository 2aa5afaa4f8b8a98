"""A client that leaves: whatever its request is doing then, it ends, in the worker as well."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from support.http.http_server import Server
from support.http.raw_http import CHAT, RawClient, chat_body, request

ROWS = 64
"""Requests that the mock worker has at a time; the others are in its queue."""
ACTIVE = "lmwire_worker_requests_active"
QUEUED = "lmwire_worker_requests_queued"
ENDED = "lmwire_worker_requests_total"
ANSWERED = "lmwire_http_requests_total"

Leaving = Callable[[RawClient], None]


@pytest.fixture
def client(gated_server: Server) -> Iterator[RawClient]:
    with RawClient(gated_server.url) as client:
        yield client


@pytest.fixture
def cancelled(gated_server: Server) -> Iterator[None]:
    """Check that exactly one of the worker's requests is cancelled in the test, and that none remains."""
    with RawClient(gated_server.url) as warm:  # so that the worker runs, and reports its metrics
        warm.chat("Hello")
        assert warm.answer().status == 200
    gated_server.wait_for(ACTIVE, 0)  # also of a request that an earlier test has left
    before = gated_server.figure(ENDED, outcome="cancelled")
    yield
    gated_server.wait_for(ENDED, before + 1, outcome="cancelled")
    gated_server.wait_for(ACTIVE, 0)
    gated_server.wait_for("lmwire_worker_requests_in_flight", 0)


@pytest.mark.usefixtures("cancelled")
@pytest.mark.parametrize("leave", [RawClient.close, RawClient.reset])
@pytest.mark.parametrize("stream", [True, False])
def test_a_disconnect_before_the_first_byte_cancels_the_request(
    gated_server: Server, client: RawClient, leave: Leaving, stream: bool
) -> None:
    client.chat("wait", stream=stream)
    gated_server.wait_for(ACTIVE, 1)
    leave(client)


@pytest.mark.usefixtures("cancelled")
@pytest.mark.parametrize("leave", [RawClient.close, RawClient.reset])
def test_a_disconnect_amid_a_stream_cancels_the_request(client: RawClient, leave: Leaving) -> None:
    client.chat("say one and wait", stream=True)
    client.read_until(b"One")
    leave(client)


@pytest.mark.usefixtures("cancelled")
def test_a_disconnect_amid_an_answer_without_a_stream_cancels_the_request(
    gated_server: Server, client: RawClient
) -> None:
    client.chat("say one and wait")
    gated_server.wait_for("lmwire_worker_requests_in_flight", 1)
    client.close()


@pytest.mark.usefixtures("cancelled")
def test_a_disconnect_during_fast_tokens_cancels_the_request(client: RawClient) -> None:
    client.chat("pour", stream=True, n=16)  # too many tokens for the worker to end by itself meanwhile
    client.read_until(b"water")
    client.close()


@pytest.mark.usefixtures("cancelled")
def test_a_disconnect_with_a_pipelined_request_cancels_the_stream(gated_server: Server, client: RawClient) -> None:
    waiting = request("POST", CHAT, chat_body("say one and wait", stream=True))
    client.send(waiting + request("GET", "/health"))
    client.read_until(b"One")
    client.close()


def test_a_disconnect_removes_a_queued_request(gated_server: Server, client: RawClient) -> None:
    with ExitStack() as leaving:
        for _ in range(ROWS):
            leaving.enter_context(RawClient(gated_server.url)).chat("wait", stream=True)
        gated_server.wait_for(ACTIVE, ROWS)
        client.chat("wait", stream=True)
        gated_server.wait_for(QUEUED, 1)
        client.close()
        gated_server.wait_for(QUEUED, 0)
        assert gated_server.figure(ACTIVE) == ROWS
    gated_server.wait_for(ACTIVE, 0)


def test_a_disconnect_during_a_load_ends_the_request(gated_server: Server, client: RawClient) -> None:
    client.ask("POST", CHAT, chat_body("Hello", model="never"), x_request_id="gone-while-loading")
    gated_server.wait_for("lmwire_model_requests_waiting", 1, model="never")
    client.close()
    gated_server.wait_for("lmwire_model_requests_waiting", 0, model="never")
    assert "status=499" in gated_server.wait_for_line("gone-while-loading")


def test_a_disconnect_amid_a_body_ends_the_request(gated_server: Server, client: RawClient) -> None:
    client.send(request("POST", CHAT, b'{"model":', content_length="1000", x_request_id="gone-in-its-body"))
    gated_server.wait_for("lmwire_http_requests_in_flight", 2)  # that, and the one who asks
    client.close()
    assert "status=499" in gated_server.wait_for_line("gone-in-its-body")


def test_a_disconnect_is_counted_in_the_metrics(gated_server: Server, client: RawClient) -> None:
    gated_server.wait_for("lmwire_http_requests_in_flight", 1)  # that of /metrics: those of earlier tests have ended
    before = gated_server.figure(ANSWERED, path=CHAT, status="499", model="mock")
    client.chat("say one and wait", stream=True)
    client.read_until(b"One")
    client.close()
    gated_server.wait_for(ANSWERED, before + 1, path=CHAT, status="499", model="mock")


def test_a_disconnect_does_not_affect_other_requests(gated_server: Server, client: RawClient) -> None:
    with RawClient(gated_server.url) as other:
        for each in (client, other):
            each.chat("pour", stream=True, max_tokens=2000)
        client.read_until(b"water")
        client.close()
        answer = other.answer()
    assert answer.status == 200
    assert answer.body.count(b"water") == 2000
