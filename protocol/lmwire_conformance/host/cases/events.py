"""The host reads the worker's lines in every form that they may have."""

import json
from typing import Any

from lmwire_protocol.limits import LINE_OUT_BYTES, MAX_INT, TOKEN_IDS

from .. import wire
from ..context import CaseContext
from ..wire import Event
from .registry import case, variants

_NESTING = 100
"""Deepest nesting of a worker's line, its own object included."""


@case("K-1", "O-1", "K-4")
def joins_the_texts_of_an_answer(context: CaseContext) -> None:
    """Join the texts in order, with nothing between them. Some are empty, or have no tokens."""
    worker = context.start()
    id = context.request("a").id
    texts = [" Once", "", " upon", "  a ", "\n", "time", "\n\n", " "]
    worker.write(wire.progress(id))
    for place, text in enumerate(texts):
        worker.write(wire.token(id, text, [] if place == 2 else None))
        context.driver.expect_text("a", "".join(texts[: place + 1]))
    worker.write(wire.result_done(id))
    context.driver.expect_done("a", text="".join(texts))


@variants({"stop": "stop", "length": "length"}, "K-1")
def accepts_an_empty_answer(context: CaseContext, finish_reason: str) -> None:
    """Accept a `done` without any event before it."""
    worker = context.start()
    worker.write(wire.result_done(context.request("a").id, finish_reason))
    context.driver.expect_done("a", finish_reason=finish_reason)


@case("O-1", "O-2")
def keeps_requests_apart(context: CaseContext) -> None:
    """Give each request its own events, in whatever way they interleave."""
    worker = context.start()
    ids = {name: context.request(name).id for name in ("a", "b", "c")}
    for number in range(20):
        worker.write(*(wire.token(id, f"{name}{number} ") for name, id in ids.items()))
    whole = {name: "".join(f"{name}{number} " for number in range(20)) for name in ids}
    worker.write(wire.token(ids["b"], "last"), wire.result_done(ids["b"], "length"))
    context.driver.expect_done("b", text=f"{whole['b']}last", finish_reason="length")
    worker.write(
        wire.token(ids["c"], "!"), wire.result_done(ids["c"]), wire.token(ids["a"], "?"), wire.result_done(ids["a"])
    )
    context.driver.expect_done("c", text=f"{whole['c']}!")
    context.driver.expect_done("a", text=f"{whole['a']}?")


@case("F-11", "F-15")
def reads_lines_that_are_cut_anywhere(context: CaseContext) -> None:
    """Read lines although a read ends inside a line, an escape or a character."""
    worker = context.start()
    id = context.request("a").id
    cut = f'{{"event":"token","id":"{id}","token":"é漢\\u00e9\\ud83d\\ude00\U0001f600","token_ids":[1]}}\n'.encode()
    text = ""
    for place in (1, 8, *range(cut.index("é".encode()), cut.index(b'"token_ids"'), 3), len(cut) - 1):
        # The case waits for the line before, so that the host has read the cut line up to there.
        worker.write(wire.token(id, "|"), cut[:place])
        context.driver.expect_text("a", text := f"{text}|")
        worker.write(cut[place:])
        context.driver.expect_text("a", text := f"{text}é漢é\U0001f600\U0001f600")
    worker.write(wire.result_done(id))
    context.driver.expect_done("a", text=text)


@case("F-11")
def reads_lines_that_come_byte_by_byte(context: CaseContext) -> None:
    """Read the reply to `hello` and an answer that are written one byte at a time."""
    worker = context.spawn(timeout=3 * context.timeout)  # one write for each byte takes long on a busy machine
    for byte in wire.encode(wire.hello_done(worker.expect("hello").id)):
        worker.write(bytes([byte]))
    context.driver.expect_start("started")
    id = context.request("a").id
    for byte in wire.encode(wire.token(id, "漢字")) + wire.encode(wire.result_done(id)):
        worker.write(bytes([byte]))
    worker.forget(id)
    context.driver.expect_done("a", text="漢字")


@case("F-13", "F-15", "F-8")
def passes_text_on_unchanged(context: CaseContext) -> None:
    """Pass text on unchanged: escaped or not, in every plane, and not normalized."""
    worker = context.start()
    id = context.request("a").id
    escaped = r"\u0041\/\"\\\b\f\n\r\t\u0000\u001f\ud83d\ude00\u2028\u2029\u0085\ufeff"
    worker.write(
        f'{{"event":"token","id":"{id}","token":"{escaped}","token_ids":[1]}}\n'.encode(),
        wire.token(id, "é 漢 \U0001f600 \x7f \u2028 \u2029 \u0085 \ufeff \uffff"),
        wire.token(id, "e"),
        wire.token(id, "\u0301"),
        wire.token(id, "\U0001f468\u200d"),
        wire.token(id, "\U0001f469"),
        wire.result_done(id),
    )
    text = 'A/"\\\b\f\n\r\t\x00\x1f\U0001f600\u2028\u2029\u0085\ufeff'
    text += "é 漢 \U0001f600 \x7f \u2028 \u2029 \u0085 \ufeff \uffffe\u0301\U0001f468\u200d\U0001f469"
    context.driver.expect_done("a", text=text)


@case("F-17", "F-11")
def accepts_members_in_any_order(context: CaseContext) -> None:
    """Accept members in any order, with any white space, and any spelling of a string or a number."""
    worker = context.start()
    id = context.request("a").id
    spelled = "".join(f"\\u{ord(character):04x}" for character in id)
    done = dict(reversed(wire.result_done(id).items()))
    worker.write(
        f'{{ "token_ids" : [ 1 , 2 ] ,\t"token" : "a" , "id" : "{spelled}" , "event" : "\\u0074oken" }}\r\n'.encode(),
        json.dumps(done, indent=None, separators=(" ,  ", " : ")).encode().replace(b"2.5", b"25e-1") + b"\n",
    )
    worker.forget(id)
    context.driver.expect_done("a", text="a")


@case("F-17")
def reads_the_last_of_several_members_with_one_name(context: CaseContext) -> None:
    """Read the last member if several have one name."""
    worker = context.start()
    id = context.request("a").id
    token, done = (wire.encode(event)[1:] for event in (wire.token(id, "a"), wire.result_done(id)))
    worker.write(
        b'{"event":"token","id":"","token":"no","token_ids":[9],' + token,
        b'{"event":"error","id":"","finish_reason":"length","usage":{},' + done,
    )
    worker.forget(id)
    context.driver.expect_done("a", text="a")


@case("F-11", "V-4")
def reads_an_event_that_nests_100_deep(context: CaseContext) -> None:
    """Read an event with an unknown field whose value nests as deep as a worker may write."""
    worker = context.start()
    id = context.request("a").id
    deep: Any = {}
    for _ in range(_NESTING - 2):
        deep = [deep]
    worker.write(wire.token(id, "a", new=deep), wire.result_done(id) | {"new": deep})
    context.driver.expect_done("a", text="a")


_NULLS: dict[str, dict[str, Any]] = {
    "token": {"new": None},
    "progress": {"total": None, "new": None},
    "done": {"stop": None, "new": None},
    "timings": {"prefill_ms": None, "first_token_ms": None, "prompt_tps": None, "decode_tps": None},
}


@case("F-16")
def reads_null_as_absent(context: CaseContext) -> None:
    """Read null as absent for each member that may be absent."""
    worker = context.start()
    id = context.request("a").id
    done = wire.result_done(id) | _NULLS["done"]
    worker.write(
        wire.progress(id) | _NULLS["progress"],
        wire.token(id, "a") | _NULLS["token"],
        done | {"timings": done["timings"] | _NULLS["timings"]},
    )
    context.driver.expect_done("a", text="a")
    worker.write(wire.error(context.request("b").id, "busy", retryable=True, field=None, bad_id=None, loaded=None))
    context.driver.expect_failed("b", "busy", retryable=True)
    worker.write(wire.model_done(context.request("c", "load", path="/models/played").id) | {"quantization": None})
    context.driver.expect_done("c", finish_reason=None)


@case("F-16", "T-2")
def ends_no_request_for_an_error_whose_id_is_null(context: CaseContext) -> None:
    """Read a null `id` as absent, and end no request."""
    worker = context.start()
    id = context.request("a").id
    worker.write(wire.error(None, "parse_error") | {"id": None}, wire.token(id, "on"), wire.result_done(id))
    context.driver.expect_done("a", text="on")


@case("T-2", "I-3", "I-5")
def ends_no_request_for_an_error_without_an_id(context: CaseContext) -> None:
    """End no request, even if the error's `bad_id` names one."""
    worker = context.start()
    id = context.request("a").id
    worker.write(wire.token(id, "it goes "), wire.error(None, "duplicate_id", bad_id=id))
    worker.write(wire.error(None, "parse_error"), wire.error(None, "invalid_request", field="id"))
    worker.write(wire.token(id, "on"), wire.result_done(id))
    context.driver.expect_done("a", text="it goes on")


_NEW: dict[str, Any] = {
    "new": {"deep": [1, None, {"er": "x"}]},
    "choice": 0,
    "code": "x",
    "finish_reason": "x",
    "state": "x",
}


@case("V-4")
def ignores_unknown_fields(context: CaseContext) -> None:
    """Ignore unknown fields in every event, at any depth."""
    worker = context.spawn()
    greeting = wire.hello_done(worker.expect("hello").id)
    worker.write({**_NEW, **greeting, "limits": {**greeting["limits"], "new": 1}})
    context.driver.expect_start("started")
    id = context.request("a").id
    done = wire.result_done(id)
    inner = {name: {**done[name], **_NEW} for name in ("usage", "timings")}
    worker.write({**_NEW, **wire.progress(id)}, {**_NEW, **wire.token(id, "a")}, {**_NEW, **done, **inner})
    context.driver.expect_done("a", text="a")
    worker.write({**_NEW, **wire.error(context.request("b").id, "engine_error")})
    context.driver.expect_failed("b", "engine_error", retryable=False)


def _unknown_events(id: str) -> list[Event]:
    return [
        {"event": "new_event", "id": id, "token": "no", "finish_reason": "stop"},
        {"event": "new_event"},
        {"event": "new_event", "id": None},
        {"event": "Token", "id": id, "token": "no", "token_ids": [1]},
        {"id": id},
        {},
    ]


@variants({f"without-{field}": field for field in ("stage", "current", "unit")}, "H-5")
def ignores_incomplete_progress(context: CaseContext, field: str) -> None:
    """Ignore a `progress` event that lacks a field, and continue the request."""
    worker = context.start()
    id = context.request("a").id
    progress = wire.progress(id)
    del progress[field]
    worker.write(wire.token(id, "a"), progress, wire.token(id, "b"), wire.result_done(id))
    context.driver.expect_done("a", text="ab")


@case("V-4")
def ignores_unknown_events(context: CaseContext) -> None:
    """Ignore unknown events with and without an id, before and after the reply to `hello`."""
    worker = context.spawn()
    hello = worker.expect("hello")
    worker.write(*_unknown_events(hello.id), wire.hello_done(hello.id))
    context.driver.expect_start("started")
    id = context.request("a").id
    worker.write(wire.token(id, "a"), *_unknown_events(id), wire.token(id, "b"), wire.result_done(id))
    context.driver.expect_done("a", text="ab")


@case("V-4")
def ignores_unknown_ids(context: CaseContext) -> None:
    """Ignore events for requests that it never made."""
    worker = context.start()
    id = context.request("a").id
    unknown = f"not {id}"
    worker.write(
        wire.token(id, "a"),
        wire.token(unknown, "no"),
        wire.progress(unknown),
        wire.result_done(unknown),
        wire.error(unknown, "internal"),
        wire.token(id, "b"),
        wire.result_done(id),
    )
    context.driver.expect_done("a", text="ab")


@case("V-4")
def reads_an_unknown_finish_reason_as_other(context: CaseContext) -> None:
    """End the request and keep its text."""
    worker = context.start()
    id = context.request("a").id
    worker.write(wire.token(id, "a"), wire.result_done(id, "new_reason"))
    context.driver.expect_done("a", text="a", finish_reason="other")


@variants({"retryable": True, "final": False}, "V-4")
def judges_an_unknown_code_by_retryable(context: CaseContext, retryable: bool) -> None:
    """Report the failure with the value of `retryable`."""
    worker = context.start()
    worker.write(wire.error(context.request("a").id, "new_code", retryable=retryable))
    context.driver.expect_failed("a", None, retryable=retryable)


@case("V-4", "V-3")
def accepts_unknown_values(context: CaseContext) -> None:
    """Accept unknown stages, units, states, features and capabilities."""
    worker = context.spawn()
    worker.write(wire.hello_done(worker.expect("hello").id) | {"features": ["dance", "chat.new"], "engines": ["new"]})
    context.driver.expect_start("started")
    load = context.request("a", "load", path="/models/played").id
    worker.write(wire.progress(load, "new_stage"), wire.progress(load, "read", "new_unit"))
    worker.write(wire.model_done(load) | {"capabilities": ["generate", "dance"]})
    context.driver.expect_done("a", finish_reason=None)
    worker.write(wire.ping_done(context.request("b", "ping").id, "new_state"))
    context.driver.expect_done("b", finish_reason=None)


@case("T-1", "V-4")
def ignores_events_after_a_terminal(context: CaseContext) -> None:
    """Keep the first terminal, and ignore a second one and text after the end."""
    worker = context.start()
    done, failed, other = (context.request(name).id for name in ("a", "b", "c"))
    worker.write(
        wire.token(done, "a"), wire.result_done(done), wire.result_done(done, "length"), wire.token(done, "late")
    )
    worker.write(wire.error(done, "internal"), wire.error(failed, "engine_error"), wire.result_done(failed))
    worker.write(wire.token(failed, "late"), wire.progress(failed), wire.token(other, "c"), wire.result_done(other))
    context.driver.expect_done("a", text="a")
    context.driver.expect_failed("b", "engine_error")
    context.driver.expect_done("c", text="c")


@variants({"busy": ("busy", True), "context-overflow": ("context_overflow", False)}, "T-1", "W-6")
def passes_a_failure_on(context: CaseContext, error: tuple[str, bool]) -> None:
    """Pass on the code and `retryable`, after the text that came before. Other requests continue."""
    code, retryable = error
    worker = context.start()
    failing, other = context.request("a").id, context.request("b").id
    worker.write(wire.token(failing, "so far"), wire.error(failing, code, retryable=retryable))
    context.driver.expect_failed("a", code, text="so far", retryable=retryable)
    worker.write(wire.result_done(other))
    context.driver.expect_done("b")


@case("B-4")
def accepts_a_load_after_a_failed_one(context: CaseContext) -> None:
    """Report a failed load, and then one that succeeds, with progress before both."""
    worker = context.start()
    id = context.request("a", "load", path="/models/none").id
    worker.write(wire.progress(id, "resolve", "steps"), wire.error(id, "model_not_found", field="path", loaded=False))
    context.driver.expect_failed("a", "model_not_found", retryable=False)
    id = context.request("b", "load", path="/models/played").id
    worker.write(wire.progress(id, "read", "bytes"), wire.model_done(id))
    context.driver.expect_done("b", finish_reason=None)


@case("F-12", "F-14")
def reads_the_longest_line(context: CaseContext) -> None:
    """Read a line of 61,439 bytes with the newline, and an event with 4,096 token ids."""
    worker = context.start()
    id = context.request("a").id
    text = "x" * (LINE_OUT_BYTES - 1 - len(wire.encode(wire.token(id, ""))))
    ids = [MAX_INT // 2**20] * TOKEN_IDS
    worker.write(wire.token(id, text), wire.token(id, "y", ids), wire.result_done(id) | {"seed": MAX_INT})
    context.driver.expect_done("a", text=f"{text}y")


@case("H-2", "W-2")
def reads_a_whole_burst(context: CaseContext) -> None:
    """Read 20,000 events, with much output on stderr in the middle."""
    worker = context.start()
    id = context.request("a").id
    burst = b"".join(wire.encode(wire.token(id, f"{number} ")) for number in range(10_000))
    worker.write(burst)
    worker.flood_stderr()
    worker.write(burst, wire.result_done(id))
    context.driver.expect_done("a", text="".join(f"{number} " for number in range(10_000)) * 2)
