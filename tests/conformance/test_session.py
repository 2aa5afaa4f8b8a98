"""The checks on every line of every run: each rule catches what breaks it, and nothing else."""

import json
from typing import Any

import pytest

from lmwire_conformance.violation import Violation
from lmwire_conformance.worker.session import CheckedSession

TIMINGS = {"queued_ms": 0.1, "total_ms": 2.0}


def send(session: CheckedSession, *commands: dict[str, Any]) -> None:
    for command in commands:
        session.note_written(json.dumps(command).encode() + b"\n")


def see(session: CheckedSession, *events: dict[str, Any]) -> None:
    for event in events:
        session.check_line(json.dumps(event).encode())


def ping(id: str) -> dict[str, Any]:
    return {"id": id, "cmd": "ping"}


def pong(id: str, **fields: Any) -> dict[str, Any]:
    return {"event": "done", "id": id, "state": "idle", "active": 0, "queued": 0, **fields}


def generate(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "cmd": "generate", "prompt": "Once", **fields}


def chat(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "cmd": "chat", "messages": [{"role": "user", "content": "Hi"}], **fields}


def token(id: str, text: str, *token_ids: int, **fields: Any) -> dict[str, Any]:
    return {"event": "token", "id": id, "token": text, "token_ids": list(token_ids), **fields}


def called(id: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"event": "tool_call", "id": id, "index": index, **fields}


def result(id: str, tokens: int, reason: str = "length", **fields: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 1, "cached_tokens": 0, "completion_tokens": tokens}
    done = {"event": "done", "id": id, "finish_reason": reason, "seed": 1, "usage": usage, "timings": TIMINGS}
    return {**done, **fields}


def error(code: str, id: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"event": "error", "id": id, "error": "A sentence.", "code": code, "retryable": False, **fields}


def cancelled(session: CheckedSession) -> None:
    send(session, generate("g"), {"id": "c", "cmd": "cancel", "all": True})


TOOLS = [{"type": "function", "function": {"name": "look"}}]
BEGUN = called("g", call_id="c", name="look")
WHOLE = called("g", arguments="{}", complete=True)
P = {"token_id": 1, "token": "x", "logprob": -1.0}
END = {"finish_reason": "length", "completion_tokens": 0}


def test_answers_of_all_kinds_break_no_rule() -> None:
    session = CheckedSession()
    send(session, chat("g", n=2, tools=TOOLS, logprobs=True, top_logprobs=1, stop=["!"], include_stop=True))
    send(session, {"id": "t", "cmd": "tokenize", "prompt": "a b"}, generate("k", timeout_ms=1))
    thought = token("g", "Hm.", 1, channel="reasoning", logprobs=[{**P, "top": [P]}])
    see(session, thought, token("t", "a b", 1, 2), token("g", "Hi!", 1, choice=1, logprobs=[{**P, "top": [P]}]))
    see(session, BEGUN, {"event": "done", "id": "t", "count": 2}, WHOLE, called("g", 1, call_id="d", name="look"))
    see(
        session,
        called("g", 1, arguments="{", complete=False),
        token("g", "<call>{", call=True),
        result("k", 0, "timeout"),
    )
    ends = [{"finish_reason": "tool_calls", "completion_tokens": 2}, {"finish_reason": "stop", "stop": "!"}]
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
    see(session, {"event": "done", "id": "h", **hello}, {"event": "a new one"}, token("g", "He", 5), pong("p"))
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
    see(session, pong("p", **fields))


BROKEN = {
    "a ping that counts what has ended": (
        [generate("g"), ping("p")],
        [pong("p", state="running", active=1, queued=1, step_age_ms=1)],
        "L-4",
    ),
    "a ping that is busy with nothing": ([ping("p")], [pong("p", state="running", step_age_ms=1)], "L-4"),
    "a ping that is idle and works": ([generate("g"), ping("p")], [pong("p", active=1)], "L-4"),
    "a ping that ends for nobody": ([ping("p")], [pong("p", state="draining")], "L-5"),
    "a ping with an age that is idle": ([ping("p")], [pong("p", step_age_ms=1)], "L-6"),
    "a ping with an age that is paused": (
        [generate("g"), ping("p")],
        [pong("p", state="paused", active=1, step_age_ms=1)],
        "L-6",
    ),
    "a ping with an age that has nothing to end": (
        [ping("p"), {"id": "q", "cmd": "quit"}],
        [pong("p", state="draining", step_age_ms=1)],
        "L-6",
    ),
    "a ping without an age that works": ([generate("g"), ping("p")], [pong("p", state="running", active=1)], "L-6"),
    "an event before any line": ((), [pong("p")], "F-19"),
    "an id that nobody used": ([ping("p")], [pong("other")], "T-1"),
    "a second terminal": ([ping("p")], [pong("p"), pong("p")], "T-1"),
    "an event after the terminal": ([generate("g")], [result("g", 0), token("g", "x", 1)], "T-1"),
    "an error without id for no line": ([ping("p")], [error("parse_error")], "T-2"),
    "a done without id": ([ping("p")], [{**pong("p"), "id": None}], "#events"),
    "a bad_id of one use": ([ping("p")], [error("duplicate_id", bad_id="p")], "I-3"),
    "a bad_id with another code": ([ping("p"), ping("p")], [error("parse_error", bad_id="p")], "I-5"),
    "no event at all": ([ping("p")], [{"id": "p"}], "#events"),
    "a token without text": ([generate("g")], [{"event": "token", "id": "g"}], "#token"),
    "too many token ids": ([generate("g")], [token("g", "", *range(4097))], "#token"),
    "too much text": ([generate("g")], [token("g", "x" * 33_000)], "F-14"),
    "a token for a ping": ([ping("p")], [token("p", "x", 1)], "#commands"),
    "another command's done": ([ping("p")], [{"event": "done", "id": "p", "matched": 0}], "#ping"),
    "a done for a line with a fault": ([{**ping("p"), "x": 1}], [pong("p")], "F-10"),
    "a refusal of a line without a fault": ([ping("p")], [error("parse_error", "p")], "F-10"),
    "another refusal": ([{"id": "p", "cmd": "sing"}], [error("parse_error", "p")], "F-10"),
    "a code for hosts only": ([ping("p")], [error("worker_lost", "p")], "#errors"),
    "busy for ever": ([generate("g")], [error("busy", "g")], "#errors"),
    "a long sentence": ([generate("g")], [error("engine_error", "g", error="x" * 5000)], "F-14"),
    "a failed load that says too little": ([{"id": "l", "cmd": "load", "path": "a"}], [error("bad_model", "l")], "B-4"),
    "a failed load that does not say of what": (
        [{"id": "l", "cmd": "load", "path": "a"}],
        [error("bad_model", "l", loaded=False)],
        "B-4",
    ),
    "a lost token": ([generate("g")], [token("g", "x", 1), result("g", 2)], "K-2"),
    "two end-of-turn tokens": ([generate("g")], [result("g", 2, "stop")], "K-2"),
    "a stop string in the text": ([generate("g", stop=["b"])], [token("g", "abc", 1), result("g", 1)], "K-3"),
    "a stop string of nobody": ([generate("g")], [result("g", 0, "stop", stop="a")], "#the-result"),
    "a choice too many": ([generate("g", n=2)], [token("g", "x", 1, choice=2)], "N-3"),
    "an account without its choices": ([generate("g", n=2)], [result("g", 0)], "N-3"),
    "an account of choices that nobody asked for": ([generate("g")], [result("g", 0, choices=[END])], "#the-result"),
    "an account that is not its first choice's": (
        [generate("g", n=2)],
        [result("g", 0, "stop", choices=[END, END])],
        "#the-result",
    ),
    "a sum that is none": (
        [generate("g", n=2)],
        [token("g", "x", 1, choice=1), result("g", 2, choices=[END, {**END, "completion_tokens": 1}])],
        "#the-result",
    ),
    "a token of another choice": (
        [generate("g", n=2)],
        [token("g", "x", 1, choice=1), result("g", 1, choices=[{**END, "completion_tokens": 1}, END])],
        "K-2",
    ),
    "a stop string in another choice's text": (
        [generate("g", n=2, stop=["b"])],
        [token("g", "abc", 1, choice=1), result("g", 1, choices=[END, {**END, "completion_tokens": 1}])],
        "K-3",
    ),
    "no stop string in the text": (
        [generate("g", stop=["b"], include_stop=True)],
        [token("g", "a", 1), result("g", 1, "stop", stop="b")],
        "K-3",
    ),
    "thoughts in a continued prompt": ([generate("g")], [token("g", "x", 1, channel="reasoning")], "#generate"),
    "thoughts that do not count": ([chat("g")], [token("g", "x", 1, channel="reasoning"), result("g", 1)], "R-4"),
    "log-probabilities nobody asked for": ([generate("g")], [token("g", "x", 1, logprobs=[P])], "#token"),
    "a log-probability too few": ([generate("g", logprobs=True)], [token("g", "x", 1, 2, logprobs=[P])], "#token"),
    "the log-probability of another token": (
        [generate("g", logprobs=True)],
        [token("g", "x", 2, logprobs=[P])],
        "#token",
    ),
    "too few of the most probable": (
        [generate("g", logprobs=True, top_logprobs=2)],
        [token("g", "x", 1, logprobs=[{**P, "top": [P]}])],
        "#token",
    ),
    "the most probable not first": (
        [generate("g", logprobs=True, top_logprobs=2)],
        [token("g", "x", 1, logprobs=[{**P, "top": [P, {**P, "logprob": -0.5}]}])],
        "#token",
    ),
    "an end in spite of ignore_eos": (
        [generate("g", ignore_eos=True)],
        [result("g", 1, "stop")],
        "#the-generation-fields",
    ),
    "an end before min_tokens": ([generate("g", min_tokens=3)], [result("g", 1, "stop")], "#the-generation-fields"),
    "a time limit nobody set": ([generate("g")], [result("g", 0, "timeout")], "N-5"),
    "a cache in spite of being off": (
        [generate("g", cache="off")],
        [result("g", 0, usage={"prompt_tokens": 2, "cached_tokens": 1, "completion_tokens": 0})],
        "A-3",
    ),
    "more cached than there was": (
        [generate("g")],
        [result("g", 0, usage={"prompt_tokens": 2, "cached_tokens": 3, "completion_tokens": 0})],
        "#the-result",
    ),
    "a call whose arguments are nested without end": (
        [chat("g", tools=TOOLS)],
        [called("g", call_id="c", name="look", arguments="[" * 5000, complete=True)],
        "Q-1",
    ),
    "a call whose arguments are no number of JSON": (
        [chat("g", tools=TOOLS)],
        [called("g", call_id="c", name="look", arguments='{"a":NaN}', complete=True)],
        "Q-1",
    ),
    "an id of another type in a new event": ([ping("p")], [{"event": "news", "id": ["p"]}], "#events"),
    "a call in a continued prompt": ([generate("g")], [called("g", call_id="c", name="look")], "#commands"),
    "a call without tools": ([chat("g")], [called("g", call_id="c", name="look")], "P-2"),
    "a call that nobody may make": (
        [chat("g", tools=TOOLS, tool_choice="none")],
        [called("g", call_id="c", name="look")],
        "P-2",
    ),
    "a call without a name": ([chat("g", tools=TOOLS)], [called("g", call_id="c")], "#tool_call"),
    "a name in the middle": ([chat("g", tools=TOOLS)], [BEGUN, called("g", name="look")], "#tool_call"),
    "a second call before the first has ended": (
        [chat("g", tools=TOOLS)],
        [BEGUN, called("g", index=1, call_id="d", name="look")],
        "Q-1",
    ),
    "a piece of a call that has ended": ([chat("g", tools=TOOLS)], [BEGUN, WHOLE, called("g", arguments="}")], "Q-1"),
    "two calls of one id": (
        [chat("g", tools=TOOLS)],
        [BEGUN, WHOLE, called("g", index=1, call_id="c", name="look")],
        "#tool_call",
    ),
    "arguments that are no object": (
        [chat("g", tools=TOOLS)],
        [BEGUN, called("g", arguments="[1]", complete=True)],
        "Q-1",
    ),
    "a call that never ends": ([chat("g", tools=TOOLS)], [BEGUN, result("g", 1, "stop")], "Q-1"),
    "text of a call that nobody may make": ([chat("g")], [token("g", "<call>", call=True)], "K-5"),
    "text of a call that lacks its mark": (
        [chat("g", tools=TOOLS)],
        [BEGUN, called("g", complete=False), token("g", "<call>"), result("g", 0, "length")],
        "K-5",
    ),
    "calls that were none": ([chat("g", tools=TOOLS)], [result("g", 1, "tool_calls")], "P-4"),
    "calls that the end does not tell of": ([chat("g", tools=TOOLS)], [BEGUN, WHOLE, result("g", 1, "stop")], "P-4"),
    "two calls at once": (
        [chat("g", tools=TOOLS, parallel_tool_calls=False)],
        [
            BEGUN,
            WHOLE,
            called("g", index=1, call_id="d", name="look"),
            called("g", index=1, arguments="{}", complete=True),
            result("g", 1, "tool_calls"),
        ],
        "P-4",
    ),
    "an answer in place of a call": ([chat("g", tools=TOOLS, tool_choice="required")], [result("g", 1, "stop")], "P-1"),
    "a call of another function": (
        [chat("g", tools=TOOLS, tool_choice={"name": "look"})],
        [called("g", call_id="c", name="run"), WHOLE, result("g", 1, "tool_calls")],
        "P-1",
    ),
    "a count that is wrong": (
        [{"id": "t", "cmd": "tokenize", "prompt": "a"}],
        [token("t", "a", 1), {"event": "done", "id": "t", "count": 2}],
        "#tokenize",
    ),
    "tokens that are only to be counted": (
        [{"id": "t", "cmd": "tokenize", "prompt": "a", "count_only": True}],
        [token("t", "a", 1)],
        "#tokenize",
    ),
    "more tokens than asked for": (
        [generate("g", max_tokens=1)],
        [token("g", "x", 1, 2), result("g", 2)],
        "#the-generation-fields",
    ),
    "another seed": ([generate("g", seed=7)], [result("g", 0)], "#the-generation-fields"),
    "a cancel nobody asked for": ([generate("g")], [result("g", 0, "cancelled")], "O-2"),
    "a cancel answered late": (
        [generate("g"), {"id": "c", "cmd": "cancel", "target": "g"}],
        [result("g", 0, "cancelled")],
        "O-2",
    ),
    "a cancel of another": (
        [generate("g"), {"id": "c", "cmd": "cancel", "target": "x"}],
        [{"event": "done", "id": "c", "matched": 0}, result("g", 0, "cancelled")],
        "C-3",
    ),
    "a hello answered second": ([{"id": "h", "cmd": "hello"}, ping("p")], [pong("p")], "O-2"),
    "something after quit": ([ping("p"), {"id": "q", "cmd": "quit"}], [{"event": "done", "id": "q"}, pong("p")], "O-2"),
    "a flood of progress": (
        [generate("g")],
        [{"event": "progress", "id": "g", "stage": "prefill", "current": n, "unit": "tokens"} for n in range(2)],
        "#progress",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_named(name: str) -> None:
    sent, seen, rule = BROKEN[name]
    session = CheckedSession()
    send(session, *sent)
    see(session, *seen[:-1])
    with pytest.raises(Violation) as raised:
        see(session, seen[-1])
    assert rule in raised.value.rules


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (b"Loading...", "F-18"),
        (b'["done"]', "F-18"),
        (b'{"event":"done","id":"\xff"}', "F-15"),
        (b'{"event":"done","id":"\\ud800"}', "F-11"),
        (b'{"event":"done","id":"p","x":NaN}', "F-11"),
        ('{"event":"done","id":"a\u2028b"}'.encode(), "F-13"),
        ('{"event":"done","id":"a\u0085b"}'.encode(), "F-13"),
        (b'{"event":"a new one","x":"' + b"x" * 61_440 + b'"}', "F-12"),
    ],
)
def test_a_broken_line_is_named_before_anything_else(line: bytes, rule: str) -> None:
    session = CheckedSession()
    send(session, ping("p"))
    with pytest.raises(Violation) as raised:
        session.check_line(line)
    assert rule in raised.value.rules


def test_a_missing_answer_is_named_at_the_end() -> None:
    session = CheckedSession()
    send(session, ping("p"), generate("g"))
    see(session, pong("p"))
    with pytest.raises(Violation, match=r"T-1.*'g' \(generate\)"):
        session.check_end(0)


def test_a_line_without_a_usable_id_needs_an_error() -> None:
    session = CheckedSession()
    send(session, ping("p"), ping("p"), {"id": 5, "cmd": "ping"})
    see(session, error("duplicate_id", bad_id="p"), pong("p"))
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
