"""What is checked on every line of every run: each rule catches what breaks it, and nothing else."""

import json
from typing import Any

import pytest

from lmwire_conformance.session import Session
from lmwire_conformance.violation import Violation

TIMINGS = {"queued_ms": 0.1, "total_ms": 2.0}


def send(session: Session, *commands: dict[str, Any]) -> None:
    for command in commands:
        session.sent(json.dumps(command).encode() + b"\n")


def see(session: Session, *events: dict[str, Any]) -> None:
    for event in events:
        session.seen(json.dumps(event).encode())


def ping(id: str) -> dict[str, Any]:
    return {"id": id, "cmd": "ping"}


def pong(id: str) -> dict[str, Any]:
    return {"event": "done", "id": id, "state": "idle", "active": 0, "queued": 0}


def generate(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "cmd": "generate", "prompt": "Once", **fields}


def token(id: str, text: str, *token_ids: int) -> dict[str, Any]:
    return {"event": "token", "id": id, "token": text, "token_ids": list(token_ids)}


def result(id: str, tokens: int, reason: str = "length", **fields: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 1, "cached_tokens": 0, "completion_tokens": tokens}
    done = {"event": "done", "id": id, "finish_reason": reason, "seed": 1, "usage": usage, "timings": TIMINGS}
    return {**done, **fields}


def error(code: str, id: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"event": "error", "id": id, "error": "A sentence.", "code": code, "retryable": False, **fields}


def cancelled(session: Session) -> None:
    send(session, generate("g"), {"id": "c", "cmd": "cancel", "all": True})


def test_a_whole_conversation_breaks_no_rule() -> None:
    session = Session()
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
    session.ended(0)


BROKEN = {
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
    "a lost token": ([generate("g")], [token("g", "x", 1), result("g", 2)], "K-2"),
    "two end-of-turn tokens": ([generate("g")], [result("g", 2, "stop")], "K-2"),
    "a stop string in the text": ([generate("g", stop=["b"])], [token("g", "abc", 1), result("g", 1)], "K-3"),
    "a stop string of nobody": ([generate("g")], [result("g", 0, "stop", stop="a")], "#the-result"),
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
    session = Session()
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
    session = Session()
    send(session, ping("p"))
    with pytest.raises(Violation) as raised:
        session.seen(line)
    assert rule in raised.value.rules


def test_what_is_owed_at_the_end_is_named() -> None:
    session = Session()
    send(session, ping("p"), generate("g"))
    see(session, pong("p"))
    with pytest.raises(Violation, match=r"T-1.*'g' \(generate\)"):
        session.ended(0)


def test_a_line_without_a_usable_id_is_owed_an_error() -> None:
    session = Session()
    send(session, ping("p"), ping("p"), {"id": 5, "cmd": "ping"})
    see(session, error("duplicate_id", bad_id="p"), pong("p"))
    with pytest.raises(Violation, match="I-4"):
        session.ended(0)


@pytest.mark.parametrize("last", [{"id": "q", "cmd": "quit"}, {"id": "q", "cmd": "hello", "protocol": [2, 2]}])
def test_what_is_sent_behind_a_quit_or_a_wrong_hello_is_not_owed(last: dict[str, Any]) -> None:
    session = Session()
    send(session, last, ping("late"), {"id": "", "cmd": "ping"})
    if last["cmd"] == "quit":
        see(session, {"event": "done", "id": "q"})
    else:
        see(session, error("unsupported_protocol", "q", protocols=[1]))
    session.ended(0)


def test_an_exit_code_of_no_meaning_is_named() -> None:
    with pytest.raises(Violation, match="exit code 1"):
        Session().ended(1)


def test_a_bridge_session_has_lines_and_nothing_else_to_keep() -> None:
    session = Session()
    send(session, {"cmd": "info"})
    see(session, {"error": "no model"}, {"done": True})
    with pytest.raises(Violation, match="F-18"):
        session.seen(b"oops")
