"""What the host makes of a worker's lines, in whatever form they may come."""

import json
from typing import Any

from lmwire_protocol.limits import LINE_OUT_BYTES, MAX_INT, TOKEN_IDS

from .. import wire
from ..context import CaseContext
from ..wire import Event
from .registry import case, variants


@case("K-1", "O-1", "K-4")
def an_answer_is_its_texts_joined(context: CaseContext) -> None:
    """In order, with nothing between them, empty ones and those without tokens included."""
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
def an_answer_can_be_empty(context: CaseContext, finish_reason: str) -> None:
    """A `done` can come without any event before it."""
    worker = context.start()
    worker.write(wire.result_done(context.request("a").id, finish_reason))
    context.driver.expect_done("a", finish_reason=finish_reason)


@case("O-1", "O-2")
def streams_interleave(context: CaseContext) -> None:
    """Events of several requests mix in any way, and each request gets its own."""
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
def lines_are_cut_anywhere(context: CaseContext) -> None:
    """A read can end inside a line, an escape, a character or a newline's line."""
    worker = context.start()
    id = context.request("a").id
    cut = f'{{"event":"token","id":"{id}","token":"é漢\\u00e9\\ud83d\\ude00\U0001f600","token_ids":[1]}}\n'.encode()
    text = ""
    for place in (1, 8, *range(cut.index("é".encode()), cut.index(b'"token_ids"'), 3), len(cut) - 1):
        # The line ahead is awaited, so that the host has read the cut one up to there.
        worker.write(wire.token(id, "|"), cut[:place])
        context.driver.expect_text("a", text := f"{text}|")
        worker.write(cut[place:])
        context.driver.expect_text("a", text := f"{text}é漢é\U0001f600\U0001f600")
    worker.write(wire.result_done(id))
    context.driver.expect_done("a", text=text)


@case("F-11")
def lines_come_byte_by_byte(context: CaseContext) -> None:
    """The reply to `hello` and an answer, written a byte at a time."""
    worker = context.spawn()
    for byte in wire.encode(wire.hello_done(worker.expect("hello").id)):
        worker.write(bytes([byte]))
    context.driver.expect_start("started")
    id = context.request("a").id
    for byte in wire.encode(wire.token(id, "漢字")) + wire.encode(wire.result_done(id)):
        worker.write(bytes([byte]))
    worker.forget(id)
    context.driver.expect_done("a", text="漢字")


@case("F-13", "F-15", "F-8")
def text_arrives_as_it_was_written(context: CaseContext) -> None:
    """Escaped or not, in every plane, joined and not normalised."""
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
def members_come_in_any_order(context: CaseContext) -> None:
    """And with any white space, and any spelling of a string or a number."""
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


_NULLS: dict[str, dict[str, Any]] = {
    "token": {"new": None},
    "progress": {"total": None, "new": None},
    "done": {"stop": None, "new": None},
    "timings": {"prefill_ms": None, "first_token_ms": None, "prompt_tps": None, "decode_tps": None},
}


@case("F-16")
def null_is_absent(context: CaseContext) -> None:
    """A member that may be absent can be null instead."""
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
def an_error_whose_id_is_null_ends_nothing(context: CaseContext) -> None:
    """A null `id` is none."""
    worker = context.start()
    id = context.request("a").id
    worker.write(wire.error(None, "parse_error") | {"id": None}, wire.token(id, "on"), wire.result_done(id))
    context.driver.expect_done("a", text="on")


@case("T-2", "I-3", "I-5")
def an_error_without_an_id_ends_nothing(context: CaseContext) -> None:
    """It is about a line that is no request, even when `bad_id` names one."""
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
def unknown_fields_are_ignored(context: CaseContext) -> None:
    """In every event, at any depth."""
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


@case("V-4", "T-1")
def an_end_that_lacks_its_fields_is_an_end(context: CaseContext) -> None:
    """The request succeeds or is lost, as the host sees fit, but nobody waits for it any longer."""
    worker = context.start()
    worker.write_last(wire.quit_done(context.request("a").id))
    context.driver.expect_end("a")


@case("V-4")
def unknown_events_are_ignored(context: CaseContext) -> None:
    """They end no request and bring no text, whether they have its id or none, before and after `hello`."""
    worker = context.spawn()
    hello = worker.expect("hello")
    worker.write(*_unknown_events(hello.id), wire.hello_done(hello.id))
    context.driver.expect_start("started")
    id = context.request("a").id
    worker.write(wire.token(id, "a"), *_unknown_events(id), wire.token(id, "b"), wire.result_done(id))
    context.driver.expect_done("a", text="ab")


@case("V-4")
def unknown_ids_are_ignored(context: CaseContext) -> None:
    """Events for requests that the host never made."""
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
def an_unknown_finish_reason_reads_as_other(context: CaseContext) -> None:
    """The request has ended all the same, and its text is valid."""
    worker = context.start()
    id = context.request("a").id
    worker.write(wire.token(id, "a"), wire.result_done(id, "new_reason"))
    context.driver.expect_done("a", text="a", finish_reason="other")


@variants({"retryable": True, "final": False}, "V-4")
def an_unknown_code_is_judged_by_retryable(context: CaseContext, retryable: bool) -> None:
    """The request has failed."""
    worker = context.start()
    worker.write(wire.error(context.request("a").id, "new_code", retryable=retryable))
    context.driver.expect_failed("a", None, retryable=retryable)


@case("V-4", "V-3")
def unknown_values_do_no_harm(context: CaseContext) -> None:
    """A `stage`, `unit`, `state`, feature or capability that the host does not know."""
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
def what_follows_a_terminal_is_ignored(context: CaseContext) -> None:
    """A second terminal, text after the end: the first terminal counts, and the host goes on."""
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
def a_failure_is_passed_on(context: CaseContext, error: tuple[str, bool]) -> None:
    """With its code and whether it can be retried, after the text that came before; others go on."""
    code, retryable = error
    worker = context.start()
    failing, other = context.request("a").id, context.request("b").id
    worker.write(wire.token(failing, "so far"), wire.error(failing, code, retryable=retryable))
    context.driver.expect_failed("a", code, text="so far", retryable=retryable)
    worker.write(wire.result_done(other))
    context.driver.expect_done("b")


@case("B-4")
def a_load_can_fail_and_the_next_succeed(context: CaseContext) -> None:
    """With progress before both."""
    worker = context.start()
    id = context.request("a", "load", path="/models/none").id
    worker.write(wire.progress(id, "resolve", "steps"), wire.error(id, "model_not_found", field="path", loaded=False))
    context.driver.expect_failed("a", "model_not_found", retryable=False)
    id = context.request("b", "load", path="/models/played").id
    worker.write(wire.progress(id, "read", "bytes"), wire.model_done(id))
    context.driver.expect_done("b", finish_reason=None)


@case("F-12", "F-14")
def the_longest_line_is_read(context: CaseContext) -> None:
    """61,439 bytes with the newline, and 4,096 token ids."""
    worker = context.start()
    id = context.request("a").id
    text = "x" * (LINE_OUT_BYTES - 1 - len(wire.encode(wire.token(id, ""))))
    ids = [MAX_INT // 2**20] * TOKEN_IDS
    worker.write(wire.token(id, text), wire.token(id, "y", ids), wire.result_done(id) | {"seed": MAX_INT})
    context.driver.expect_done("a", text=f"{text}y")


@case("H-2", "W-2")
def a_burst_is_read_whole(context: CaseContext) -> None:
    """20,000 events in one write, and a flood on stderr in the middle."""
    worker = context.start()
    id = context.request("a").id
    burst = b"".join(wire.encode(wire.token(id, f"{number} ")) for number in range(10_000))
    worker.write(burst)
    worker.flood_stderr()
    worker.write(burst, wire.result_done(id))
    context.driver.expect_done("a", text="".join(f"{number} " for number in range(10_000)) * 2)
