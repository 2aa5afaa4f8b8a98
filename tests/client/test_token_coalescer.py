"""The delay of tokens, and the bytes that are not delayed."""

from collections.abc import Sequence
from math import inf

import pytest

from lmwire.protocol.deltas import TokenDelta, ToolCallDelta
from lmwire.protocol.session import Event, RequestEvents
from lmwire.transport.token_coalescer import TokenCoalescer
from lmwire_protocol import events

TOKEN = b'{"event":"token","id":"a","token":"la","token_ids":[1]}\n'
DONE = b'{"event":"done","id":"a"}\n'
FOUR = ["a", "b", "c", "d"]


def tokens(ids: Sequence[str]) -> list[RequestEvents]:
    return [RequestEvents(id, [TokenDelta(id=id, token="la", token_ids=[1])]) for id in ids]


def started(*not_started: str) -> TokenCoalescer:
    """Return a coalescer that has just delivered tokens of four requests, at 1 s."""
    coalescer = TokenCoalescer()
    for id in (*FOUR, *not_started):
        coalescer.add_request(id)
    assert coalescer.feed(TOKEN, 1.0) == TOKEN
    coalescer.delivered(tokens(FOUR), 1.0)
    return coalescer


def test_tokens_are_delayed_until_the_first_read_after_they_are_due() -> None:
    coalescer = started()
    assert coalescer.due_at == inf
    assert coalescer.feed(TOKEN, 1.001) == b""
    assert coalescer.due_at == 1.03
    assert coalescer.feed(TOKEN + TOKEN, 1.029) == b""
    assert coalescer.feed(TOKEN, 1.03) == 4 * TOKEN
    assert coalescer.due_at == inf


def test_buffered_tokens_are_delivered_without_new_data() -> None:
    coalescer = started()
    coalescer.feed(TOKEN, 1.001)
    assert coalescer.feed(b"", 1.029) == b""
    assert coalescer.feed(b"", 1.03) == TOKEN
    assert coalescer.feed(b"", 1.03) == b""


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(DONE, id="an end"),
        pytest.param(TOKEN + DONE, id="a token and an end"),
        pytest.param(DONE + TOKEN, id="an end and a token"),
        pytest.param(TOKEN + TOKEN[:20], id="part of a token"),
        pytest.param(TOKEN[20:] + TOKEN, id="the rest of a token"),
        pytest.param(TOKEN.replace(b":", b": "), id="a token in another hand"),
        pytest.param(b"\n", id="no event"),
    ],
)
def test_other_events_are_delivered_at_once_after_the_buffered_tokens(data: bytes) -> None:
    coalescer = started()
    coalescer.feed(TOKEN, 1.001)
    assert coalescer.feed(data, 1.002) == TOKEN + data


def test_a_token_s_text_may_look_like_an_event() -> None:
    coalescer = started()
    assert coalescer.feed(TOKEN.replace(b"la", rb"{\"event\":\"token\",\n"), 1.001) == b""
    assert coalescer.feed(DONE.replace(b"a", rb"{\"event\":\"token\",", 1), 1.002)


@pytest.mark.parametrize(("requests", "seconds"), [(1, 0.03), (4, 0.03), (6, 0.0375), (8, 0.05), (32, 0.05)])
def test_the_delay_grows_with_the_number_of_requests(requests: int, seconds: float) -> None:
    coalescer = started()
    coalescer.delivered(tokens([str(index) for index in range(requests)]), 2.0)
    coalescer.feed(TOKEN, 2.0)
    assert coalescer.due_at == 2.0 + seconds


@pytest.mark.parametrize(("requests", "seconds"), [(1, 0.00125), (4, 0.005), (16, 0.02), (32, 0.02)])
def test_the_delay_is_shorter_while_a_request_waits_for_its_first_token(requests: int, seconds: float) -> None:
    coalescer = started("late")
    coalescer.delivered(tokens([str(index) for index in range(requests)]), 2.0)
    coalescer.feed(TOKEN, 2.0)
    assert coalescer.due_at == 2.0 + seconds


@pytest.mark.parametrize(
    ("event", "due_at"),
    [
        (TokenDelta(id="late", token="la", token_ids=[1]), 2.03),
        (ToolCallDelta(id="late", index=0, call_id="c", name="look", arguments="{"), 2.03),
        (events.Error(id="late", error="no", code="busy", retryable=True), 2.03),
        (events.Progress(id="late", stage="prefill", current=1, total=2, unit="tokens"), 2.005),
    ],
)
def test_a_request_has_started_after_any_event_but_progress(event: Event, due_at: float) -> None:
    coalescer = started("late")
    coalescer.delivered([*tokens(FOUR[1:]), RequestEvents("late", [event])], 1.9)
    coalescer.delivered(tokens(FOUR), 2.0)
    coalescer.feed(TOKEN, 2.0)
    assert coalescer.due_at == pytest.approx(due_at)


def test_the_first_read_after_a_new_request_is_delivered() -> None:
    coalescer = started()
    coalescer.feed(TOKEN, 1.001)
    coalescer.add_request("new")
    assert coalescer.feed(TOKEN, 1.002) == 2 * TOKEN


def test_everything_is_delivered_at_the_end() -> None:
    coalescer = started()
    coalescer.feed(TOKEN, 1.001)
    coalescer.stop_delay()
    assert coalescer.feed(b"", 1.002) == TOKEN
