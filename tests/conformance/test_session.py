"""Valid sessions break no rule, and what a worker leaves unanswered is named at the end."""

from typing import Any

import pytest

from lmwire_conformance.violation import Violation
from lmwire_conformance.worker.session import CheckedSession
from support.protocol.session_lines import (
    CLOSED,
    LOGPROB,
    OPENED,
    TOOLS,
    chat,
    error,
    generate,
    ping,
    ping_done,
    result,
    see,
    send,
    token,
    tool_call,
)


def test_answers_of_all_kinds_break_no_rule() -> None:
    session = CheckedSession()
    send(session, chat("g", n=2, tools=TOOLS, logprobs=True, top_logprobs=1, stop=["!"], include_stop=True))
    send(session, {"id": "t", "cmd": "tokenize", "prompt": "a b"}, generate("k", timeout_ms=1))
    reasoning = token("g", "Hm.", 1, channel="reasoning", logprobs=[{**LOGPROB, "top": [LOGPROB]}])
    see(
        session,
        reasoning,
        token("t", "a b", 1, 2),
        token("g", "Hi!", 1, choice=1, logprobs=[{**LOGPROB, "top": [LOGPROB]}]),
    )
    see(session, OPENED, {"event": "done", "id": "t", "count": 2}, CLOSED, tool_call("g", 1, call_id="d", name="look"))
    see(
        session,
        tool_call("g", 1, arguments="{", complete=False),
        token("g", "<call>{", call=True),
        result("k", 0, "timeout"),
    )
    ends: list[dict[str, Any]] = [
        {"finish_reason": "tool_calls", "completion_tokens": 2},
        {"finish_reason": "stop", "stop": "!"},
    ]
    ends[1]["completion_tokens"] = 1
    done = result("g", 3, "tool_calls", choices=ends)
    done["usage"]["reasoning_tokens"] = 1
    see(session, done)
    (answer,) = session.terminals["g"]
    assert (answer["@reasoning"], answer["@text"], answer["@tokens"]) == ("Hm.", "<call>{", 2)
    assert answer["@tool_calls"] == [
        {"call_id": "c", "name": "look", "arguments": {}, "complete": True},
        {"call_id": "d", "name": "look", "arguments": "{", "complete": False},
    ]
    assert [choice["text"] for choice in answer["@choices"]] == ["<call>{", "Hi!"]
    session.note_stdin_closed()
    session.check_end(0)


def test_a_whole_conversation_breaks_no_rule() -> None:
    session = CheckedSession()
    send(session, {"id": "h", "cmd": "hello", "protocol": [1, 2]}, ping("p"), generate("g", stop=["x"]), ping("g"))
    limits = {"line_in_bytes": 1, "line_out_bytes": 1, "requests": 1, "queued_bytes": 1}
    hello = {"protocol": 1, "worker": "w", "pid": 1, "engines": [], "features": [], "limits": limits}
    see(session, {"event": "done", "id": "h", **hello}, {"event": "a new one"}, token("g", "He", 5), ping_done("p"))
    see(session, error("duplicate_id", bad_id="g"), token("g", "llo", 6, 7), result("g", 4, "stop"))
    (answer,) = session.terminals["g"]
    assert (answer["@text"], answer["@token_ids"], answer["@tokens"]) == ("Hello", [5, 6, 7], 3)
    send(session, generate("g"), {"id": "c", "cmd": "cancel", "target": "g"}, {"no": "id"}, {"id": "q", "cmd": "quit"})
    see(session, {"event": "done", "id": "c", "matched": 1}, result("g", 0, "cancelled"), error("invalid_request"))
    see(session, {"event": "done", "id": "q"})
    session.check_end(0)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"queued": 1},
        {"state": "running", "queued": 1, "step_age_ms": 0.5},
        {"state": "loading", "active": 1, "step_age_ms": 0},
        {"state": "paused", "active": 1},
    ],
)
def test_a_worker_with_a_request_may_do_anything_that_fits(fields: dict[str, Any]) -> None:
    session = CheckedSession()
    send(session, generate("g"), ping("p"))
    see(session, ping_done("p", **fields))


def test_a_missing_answer_is_named_at_the_end() -> None:
    session = CheckedSession()
    send(session, ping("p"), generate("g"))
    see(session, ping_done("p"))
    with pytest.raises(Violation, match=r"T-1.*'g' \(generate\)"):
        session.check_end(0)


def test_a_line_without_a_usable_id_needs_an_error() -> None:
    session = CheckedSession()
    send(session, ping("p"), ping("p"), {"id": 5, "cmd": "ping"})
    see(session, error("duplicate_id", bad_id="p"), ping_done("p"))
    with pytest.raises(Violation, match="I-4"):
        session.check_end(0)


@pytest.mark.parametrize("last", [{"id": "q", "cmd": "quit"}, {"id": "q", "cmd": "hello", "protocol": [2, 2]}])
def test_lines_after_a_quit_or_a_refused_hello_need_no_answer(last: dict[str, Any]) -> None:
    session = CheckedSession()
    send(session, last, ping("late"), {"id": "", "cmd": "ping"})
    if last["cmd"] == "quit":
        see(session, {"event": "done", "id": "q"})
    else:
        see(session, error("unsupported_protocol", "q", protocols=[1]))
    session.check_end(0)


def test_an_unknown_exit_code_is_named() -> None:
    with pytest.raises(Violation, match="exit code 1"):
        CheckedSession().check_end(1)


def test_only_the_lines_of_a_bridge_session_are_checked() -> None:
    session = CheckedSession()
    send(session, {"cmd": "info"})
    see(session, {"error": "no model"}, {"done": True})
    with pytest.raises(Violation, match="F-18"):
        session.check_line(b"oops")
