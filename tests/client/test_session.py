"""The client's session: bytes in, events out, without a process."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmwire import ClientSession, ProtocolViolation, TokenDelta, ToolCallDelta
from lmwire_protocol import Generate, Hello, Ping, events
from support.process.fake_worker import greeting, result, token

PING = {"state": "idle", "active": 0, "queued": 0}


def line(event: Any) -> bytes:
    return json.dumps(event).encode() + b"\n"


def session(*, greeted: bool = True) -> ClientSession:
    """Return a session whose hello has the id "1"."""
    opened = ClientSession()
    opened.send(Hello())
    if greeted:
        opened.receive(line(greeting("1", "test")))
    return opened


def generating() -> ClientSession:
    """Return a session in which "2" and "3" generate."""
    opened = session()
    for _ in range(2):
        opened.send(Generate(prompt="x"))
    return opened


def received(opened: ClientSession, *data: bytes) -> dict[str, list[events.Event]]:
    """Return the events in the data, by request."""
    gathered: dict[str, list[events.Event]] = {}
    for chunk in data:
        for id, arrived in opened.receive(chunk):
            gathered.setdefault(id, []).extend(arrived)
    return gathered


def test_each_request_has_an_id_of_its_own_and_its_line_starts_with_it() -> None:
    opened = ClientSession()
    assert opened.send(Ping()) == ("1", b'{"id":"1","cmd":"ping"}\n')
    assert opened.send(Ping()) == ("2", b'{"id":"2","cmd":"ping"}\n')


def test_a_command_that_cannot_be_encoded_opens_no_request() -> None:
    opened = session()
    with pytest.raises(UnicodeEncodeError):
        opened.send(Generate(prompt="\ud800"))
    assert opened.finish() == []


def test_a_done_is_read_as_its_own_commands() -> None:
    opened = session()
    opened.send(Ping())
    opened.send(Generate(prompt="x"))
    arrived = received(opened, line({"event": "done", "id": "2", **PING}), line(result("3", "stop")))
    assert isinstance(arrived["2"][0], events.PingDone)
    assert isinstance(arrived["3"][0], events.ResultDone)


def test_a_read_returns_one_entry_a_request_with_its_events_in_order() -> None:
    lines = [line(token("2", "a")), line(token("3", "x")), line(token("2", "b")), line(result("2", "stop"))]
    [first, second] = generating().receive(b"".join(lines))
    assert [first.id, second.id] == ["2", "3"]
    assert [event.text for event in first.events if isinstance(event, TokenDelta)] == ["a", "b"]
    assert isinstance(first.events[-1], events.ResultDone)


def test_what_follows_a_terminal_is_ignored() -> None:
    opened = generating()
    arrived = received(opened, line(result("2", "stop")), line(result("2", "length")), line(token("2", "late")))
    [only] = arrived["2"]
    assert isinstance(only, events.ResultDone)
    assert only.finish_reason == "stop"
    assert opened.violation is None


@pytest.mark.parametrize(
    "ignored",
    [
        token("unknown", "a"),
        result("unknown", "stop"),
        {"event": "new_event", "id": "2"},
        {"event": "progress", "id": "2", "stage": "new_stage", "current": 1, "unit": "tokens"},
        {"some": "object"},
    ],
)
def test_unknown_ids_and_unknown_events_are_ignored(ignored: dict[str, Any]) -> None:
    opened = generating()
    assert received(opened, line(ignored)) == {}
    assert opened.violation is None


def test_unknown_fields_are_ignored() -> None:
    arrived = received(
        generating(), line(token("2", "a") | {"new": {"deep": [1]}}), line(result("2", "stop") | {"new": 1})
    )
    [delta, done] = arrived["2"]
    assert isinstance(delta, TokenDelta) and isinstance(done, events.ResultDone)


def test_an_unknown_finish_reason_reads_as_other() -> None:
    [done] = received(generating(), line(result("2", "new_reason")))["2"]
    assert isinstance(done, events.ResultDone)
    assert done.finish_reason == "other"


def test_an_unknown_finish_reason_of_one_answer_reads_as_other() -> None:
    ends = [{"finish_reason": reason, "completion_tokens": 1} for reason in ("new_reason", "length")]
    [done] = received(generating(), line(result("2", "stop") | {"choices": ends}))["2"]
    assert isinstance(done, events.ResultDone)
    assert [choice.finish_reason for choice in done.choices or ()] == ["other", "length"]


def test_an_unknown_channel_is_neither_answer_nor_reasoning() -> None:
    [delta] = received(generating(), line(token("2", "a") | {"channel": "new_channel"}))["2"]
    assert isinstance(delta, TokenDelta)
    assert (delta.channel, delta.token, delta.text, delta.reasoning) == ("new_channel", "a", "", "")


def test_tool_calls_are_in_order_among_the_tokens() -> None:
    call = {"event": "tool_call", "id": "2", "index": 0, "call_id": "c", "name": "look", "complete": True}
    arrived = received(generating(), line(token("2", "a")) + line(call) + line(token("2", "b")))["2"]
    assert [type(event) for event in arrived] == [TokenDelta, ToolCallDelta, TokenDelta]


def test_an_unknown_state_is_passed_on() -> None:
    opened = session()
    opened.send(Ping())
    [done] = received(opened, line({"event": "done", "id": "2", **PING, "state": "new_state"}))["2"]
    assert isinstance(done, events.PingDone)
    assert done.state == "new_state"


def test_a_field_of_another_commands_done_is_an_unknown_field() -> None:
    opened = session()
    opened.send(Ping())
    [done] = received(opened, line({"event": "done", "id": "2", **PING, "finish_reason": "new_reason"}))["2"]
    assert isinstance(done, events.PingDone)


def test_a_request_whose_done_is_broken_is_left_without_a_terminal() -> None:
    opened = generating()
    assert received(opened, line({"event": "done", "id": "2"})) == {}
    assert opened.finish() == ["2", "3"]


def test_an_error_without_an_id_is_a_notice_and_ends_nothing() -> None:
    opened = generating()
    error = {"event": "error", "error": "in flight", "code": "duplicate_id", "retryable": False, "bad_id": "2"}
    assert received(opened, line(error)) == {}
    assert [notice.bad_id for notice in opened.notices] == ["2"]
    assert opened.finish() == ["2", "3"]


def test_a_partial_line_at_the_end_is_discarded_and_open_requests_are_returned() -> None:
    opened = generating()
    arrived = received(opened, line(result("2", "stop")) + line(result("3", "stop"))[:-1])
    assert set(arrived) == {"2"}
    assert opened.finish() == ["3"]


def test_a_version_that_was_not_offered_is_a_violation() -> None:
    opened = session(greeted=False)
    assert opened.receive(line(greeting("1", "test") | {"protocol": 2})) == []
    assert "version 2" in str(opened.violation)
    assert opened.finish() == ["1"]


def test_a_banner_before_hello_is_skipped() -> None:
    opened = session(greeted=False)
    arrived = received(opened, b"Welcome!\n\n[1, 2]\n\xff\xfe\n{broken\n", line(greeting("1", "test")))
    assert isinstance(arrived["1"][0], events.HelloDone)


def test_a_banner_ends_at_64_kib() -> None:
    opened = session(greeted=False)
    opened.receive(b"x" * 1023 + b"\n")
    assert opened.violation is None
    opened.receive((b"x" * 1023 + b"\n") * 63)
    assert opened.violation is None
    opened.receive(b" \t\r\n" * 1000)  # blank lines do not count
    assert opened.violation is None
    opened.receive(b"x\n")
    assert "65536 bytes before the reply to hello" in str(opened.violation)


@pytest.mark.parametrize(
    "broken",
    [
        b"print\n",
        b"[]\n",
        b"\xff\n",
        b"[" * 100_000 + b"\n",
        b'{"event":"token","id":"2","token":5}\n',
        b'{"event":"tool_call","id":"2"}\n',
        b'{"event":"done","id":"2"}\n',
        b'{"event":"done"}\n',
    ],
)
def test_after_hello_a_line_that_is_not_an_object_or_a_broken_event_is_a_violation(broken: bytes) -> None:
    opened = generating()
    before = line(token("2", "good"))
    arrived = received(opened, before + broken + line(token("2", "not trusted")), line(token("2", "nor this")))
    assert isinstance(opened.violation, ProtocolViolation)
    assert [event.text for event in arrived["2"] if isinstance(event, TokenDelta)] == ["good"]


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_over_1_mib_is_a_violation_ended_or_not(end: bytes) -> None:
    opened = generating()
    opened.receive(line(token("2", "x" * (2**20 - 100))))
    assert opened.violation is None
    opened.receive(line(token("2", "x" * 2**20))[:-1] + end)
    assert "longer than 1048576 bytes" in str(opened.violation)


def test_a_carriage_return_and_a_blank_line_are_ignored() -> None:
    opened = generating()
    assert set(received(opened, line(token("2", "a"))[:-1] + b"\r\n\r\n \n")) == {"2"}
    assert opened.violation is None


_IDS = st.sampled_from(["2", "3", "unknown"])
_EVENTS = st.one_of(
    st.builds(token, _IDS, st.text()),
    st.builds(result, _IDS, st.sampled_from(["stop", "new_reason"])),
    st.builds(lambda id: {"event": "new_event", "id": id}, _IDS),
    st.just({"event": "error", "error": "e", "code": "parse_error", "retryable": False}),
)
_LINES = st.lists(st.one_of(_EVENTS.map(line), st.sampled_from([b"\n", b"garbage\n", b'{"event":"token"}\n'])))


@given(_LINES.map(b"".join), st.lists(st.integers(min_value=0), max_size=8), st.binary(max_size=3))
def test_however_the_bytes_are_cut_the_events_are_the_same(data: bytes, cuts: list[int], rest: bytes) -> None:
    data += rest
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    whole, cut = generating(), generating()
    at_once = received(whole, data)
    in_parts = received(cut, *(data[start:end] for start, end in pairwise(places)))
    assert in_parts == at_once
    assert cut.notices == whole.notices
    assert str(cut.violation) == str(whole.violation)
    assert cut.finish() == whole.finish()
