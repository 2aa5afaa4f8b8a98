"""Each rule that is checked on every line catches the sessions that break it."""

from types import SimpleNamespace

import pytest

from lmwire_conformance.violation import Violation
from lmwire_conformance.worker import session
from lmwire_conformance.worker.session import CheckedSession
from support.protocol.session_lines import (
    CHOICE_END,
    CLOSED,
    HELLO,
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

BROKEN = {
    "a ping that counts what has ended": (
        [generate("g"), ping("p")],
        [ping_done("p", state="running", active=1, queued=1, step_age_ms=1)],
        "L-4",
    ),
    "a ping that is busy with nothing": ([ping("p")], [ping_done("p", state="running", step_age_ms=1)], "L-4"),
    "a ping that is idle and works": ([generate("g"), ping("p")], [ping_done("p", active=1)], "L-4"),
    "a ping that ends for nobody": ([ping("p")], [ping_done("p", state="draining")], "L-5"),
    "a ping with an age that is idle": ([ping("p")], [ping_done("p", step_age_ms=1)], "L-6"),
    "a ping with an age that is paused": (
        [generate("g"), ping("p")],
        [ping_done("p", state="paused", active=1, step_age_ms=1)],
        "L-6",
    ),
    "a ping with an age that has nothing to end": (
        [ping("p"), {"id": "q", "cmd": "quit"}],
        [ping_done("p", state="draining", step_age_ms=1)],
        "L-6",
    ),
    "a ping without an age that works": (
        [generate("g"), ping("p")],
        [ping_done("p", state="running", active=1)],
        "L-6",
    ),
    "an event before any line": ((), [ping_done("p")], "F-19"),
    "an id that nobody used": ([ping("p")], [ping_done("other")], "T-1"),
    "a second terminal": ([ping("p")], [ping_done("p"), ping_done("p")], "T-1"),
    "an event after the terminal": ([generate("g")], [result("g", 0), token("g", "x", 1)], "T-1"),
    "an error without id for no line": ([ping("p")], [error("parse_error")], "T-2"),
    "a done without id": ([ping("p")], [{**ping_done("p"), "id": None}], "#events"),
    "a bad_id of one use": ([ping("p")], [error("duplicate_id", bad_id="p")], "I-3"),
    "a bad_id with another code": ([ping("p"), ping("p")], [error("parse_error", bad_id="p")], "I-5"),
    "no event at all": ([ping("p")], [{"id": "p"}], "#events"),
    "a token without text": ([generate("g")], [{"event": "token", "id": "g"}], "#token"),
    "too many token ids": ([generate("g")], [token("g", "", *range(4097))], "#token"),
    "too much text": ([generate("g")], [token("g", "x" * 33_000)], "F-14"),
    "a token for a ping": ([ping("p")], [token("p", "x", 1)], "#commands"),
    "a done of another name": ([ping("p")], [ping_done("p", cmd="stats")], "T-4"),
    "a hello that names no command": (
        [{"id": "h", "cmd": "hello"}],
        [{"event": "done", "id": "h", **HELLO, "features": ["done.cmd"]}],
        "T-4",
    ),
    "a done without the name that is listed": (
        [{"id": "h", "cmd": "hello"}, ping("p")],
        [{"event": "done", "id": "h", "cmd": "hello", **HELLO, "features": ["done.cmd"]}, ping_done("p")],
        "T-4",
    ),
    "another command's done": ([ping("p")], [{"event": "done", "id": "p", "matched": 0}], "#ping"),
    "a done for a line with a fault": ([{**ping("p"), "x": 1}], [ping_done("p")], "F-10"),
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
    "an account of choices that nobody asked for": (
        [generate("g")],
        [result("g", 0, choices=[CHOICE_END])],
        "#the-result",
    ),
    "an account that is not its first choice's": (
        [generate("g", n=2)],
        [result("g", 0, "stop", choices=[CHOICE_END, CHOICE_END])],
        "#the-result",
    ),
    "a sum that is none": (
        [generate("g", n=2)],
        [token("g", "x", 1, choice=1), result("g", 2, choices=[CHOICE_END, {**CHOICE_END, "completion_tokens": 1}])],
        "#the-result",
    ),
    "a token of another choice": (
        [generate("g", n=2)],
        [token("g", "x", 1, choice=1), result("g", 1, choices=[{**CHOICE_END, "completion_tokens": 1}, CHOICE_END])],
        "K-2",
    ),
    "a stop string in another choice's text": (
        [generate("g", n=2, stop=["b"])],
        [token("g", "abc", 1, choice=1), result("g", 1, choices=[CHOICE_END, {**CHOICE_END, "completion_tokens": 1}])],
        "K-3",
    ),
    "no stop string in the text": (
        [generate("g", stop=["b"], include_stop=True)],
        [token("g", "a", 1), result("g", 1, "stop", stop="b")],
        "K-3",
    ),
    "thoughts in a continued prompt": ([generate("g")], [token("g", "x", 1, channel="reasoning")], "#generate"),
    "thoughts that do not count": ([chat("g")], [token("g", "x", 1, channel="reasoning"), result("g", 1)], "R-4"),
    "log-probabilities nobody asked for": ([generate("g")], [token("g", "x", 1, logprobs=[LOGPROB])], "#token"),
    "a log-probability too few": (
        [generate("g", logprobs=True)],
        [token("g", "x", 1, 2, logprobs=[LOGPROB])],
        "#token",
    ),
    "the log-probability of another token": (
        [generate("g", logprobs=True)],
        [token("g", "x", 2, logprobs=[LOGPROB])],
        "#token",
    ),
    "too few of the most probable": (
        [generate("g", logprobs=True, top_logprobs=2)],
        [token("g", "x", 1, logprobs=[{**LOGPROB, "top": [LOGPROB]}])],
        "#token",
    ),
    "the most probable not first": (
        [generate("g", logprobs=True, top_logprobs=2)],
        [token("g", "x", 1, logprobs=[{**LOGPROB, "top": [LOGPROB, {**LOGPROB, "logprob": -0.5}]}])],
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
        [tool_call("g", call_id="c", name="look", arguments="[" * 5000, complete=True)],
        "Q-1",
    ),
    "a call whose arguments are no number of JSON": (
        [chat("g", tools=TOOLS)],
        [tool_call("g", call_id="c", name="look", arguments='{"a":NaN}', complete=True)],
        "Q-1",
    ),
    "an id of another type in a new event": ([ping("p")], [{"event": "news", "id": ["p"]}], "#events"),
    "a call in a continued prompt": ([generate("g")], [tool_call("g", call_id="c", name="look")], "#commands"),
    "a call without tools": ([chat("g")], [tool_call("g", call_id="c", name="look")], "P-2"),
    "a call that nobody may make": (
        [chat("g", tools=TOOLS, tool_choice="none")],
        [tool_call("g", call_id="c", name="look")],
        "P-2",
    ),
    "a call without a name": ([chat("g", tools=TOOLS)], [tool_call("g", call_id="c")], "#tool_call"),
    "a name in the middle": ([chat("g", tools=TOOLS)], [OPENED, tool_call("g", name="look")], "#tool_call"),
    "a second call before the first has ended": (
        [chat("g", tools=TOOLS)],
        [OPENED, tool_call("g", index=1, call_id="d", name="look")],
        "Q-1",
    ),
    "a piece of a call that has ended": (
        [chat("g", tools=TOOLS)],
        [OPENED, CLOSED, tool_call("g", arguments="}")],
        "Q-1",
    ),
    "two calls of one id": (
        [chat("g", tools=TOOLS)],
        [OPENED, CLOSED, tool_call("g", index=1, call_id="c", name="look")],
        "#tool_call",
    ),
    "arguments that are no object": (
        [chat("g", tools=TOOLS)],
        [OPENED, tool_call("g", arguments="[1]", complete=True)],
        "Q-1",
    ),
    "a call that never ends": ([chat("g", tools=TOOLS)], [OPENED, result("g", 1, "stop")], "Q-1"),
    "text of a call that nobody may make": ([chat("g")], [token("g", "<call>", call=True)], "K-5"),
    "text of a call that lacks its mark": (
        [chat("g", tools=TOOLS)],
        [OPENED, tool_call("g", complete=False), token("g", "<call>"), result("g", 0, "length")],
        "K-5",
    ),
    "calls that were none": ([chat("g", tools=TOOLS)], [result("g", 1, "tool_calls")], "P-4"),
    "calls that the end does not tell of": ([chat("g", tools=TOOLS)], [OPENED, CLOSED, result("g", 1, "stop")], "P-4"),
    "two calls at once": (
        [chat("g", tools=TOOLS, parallel_tool_calls=False)],
        [
            OPENED,
            CLOSED,
            tool_call("g", index=1, call_id="d", name="look"),
            tool_call("g", index=1, arguments="{}", complete=True),
            result("g", 1, "tool_calls"),
        ],
        "P-4",
    ),
    "an answer in place of a call": ([chat("g", tools=TOOLS, tool_choice="required")], [result("g", 1, "stop")], "P-1"),
    "a call of another function": (
        [chat("g", tools=TOOLS, tool_choice={"name": "look"})],
        [tool_call("g", call_id="c", name="run"), CLOSED, result("g", 1, "tool_calls")],
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
    "a hello answered second": ([{"id": "h", "cmd": "hello"}, ping("p")], [ping_done("p")], "O-2"),
    "something after quit": (
        [ping("p"), {"id": "q", "cmd": "quit"}],
        [{"event": "done", "id": "q"}, ping_done("p")],
        "O-2",
    ),
    "a flood of progress": (
        [generate("g")],
        [{"event": "progress", "id": "g", "stage": "prefill", "current": n, "unit": "tokens"} for n in range(2)],
        "#progress",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: 100.0))  # a flood takes no time
    sent, seen, rule = BROKEN[name]
    broken = CheckedSession()
    send(broken, *sent)
    see(broken, *seen[:-1])
    with pytest.raises(Violation) as raised:
        see(broken, seen[-1])
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
    broken = CheckedSession()
    send(broken, ping("p"))
    with pytest.raises(Violation) as raised:
        broken.check_line(line)
    assert rule in raised.value.rules
