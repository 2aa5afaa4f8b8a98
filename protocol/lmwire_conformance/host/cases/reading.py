"""What the host makes of a worker's lines, in whatever form they may come."""

import json
from typing import Any

from lmwire_protocol.limits import LINE_OUT_BYTES, MAX_INT, TOKEN_IDS

from .. import lines
from ..lines import Event
from ..play import Play
from .registry import case, variants


@case("K-1", "O-1", "K-4")
def an_answer_is_its_texts_joined(play: Play) -> None:
    """In order, with nothing between them, empty ones and those without tokens included."""
    worker = play.start()
    id = play.request("a").id
    texts = [" Once", "", " upon", "  a ", "\n", "time", "\n\n", " "]
    worker.say(lines.progress(id))
    for place, text in enumerate(texts):
        worker.say(lines.token(id, text, [] if place == 2 else None))
        play.driver.expect_text("a", "".join(texts[: place + 1]))
    worker.say(lines.result(id))
    play.driver.expect_done("a", text="".join(texts))


@variants({"stop": "stop", "length": "length"}, "K-1")
def an_answer_can_be_empty(play: Play, finish_reason: str) -> None:
    """A `done` can come without any event before it."""
    worker = play.start()
    worker.say(lines.result(play.request("a").id, finish_reason))
    play.driver.expect_done("a", finish_reason=finish_reason)


@case("O-1", "O-2")
def streams_interleave(play: Play) -> None:
    """Events of several requests mix in any way, and each request gets its own."""
    worker = play.start()
    ids = {name: play.request(name).id for name in ("a", "b", "c")}
    for number in range(20):
        worker.say(*(lines.token(id, f"{name}{number} ") for name, id in ids.items()))
    whole = {name: "".join(f"{name}{number} " for number in range(20)) for name in ids}
    worker.say(lines.token(ids["b"], "last"), lines.result(ids["b"], "length"))
    play.driver.expect_done("b", text=f"{whole['b']}last", finish_reason="length")
    worker.say(lines.token(ids["c"], "!"), lines.result(ids["c"]), lines.token(ids["a"], "?"), lines.result(ids["a"]))
    play.driver.expect_done("c", text=f"{whole['c']}!")
    play.driver.expect_done("a", text=f"{whole['a']}?")


@case("F-11", "F-15")
def lines_are_cut_anywhere(play: Play) -> None:
    """A read can end inside a line, an escape, a character or a newline's line."""
    worker = play.start()
    id = play.request("a").id
    cut = f'{{"event":"token","id":"{id}","token":"é漢\\u00e9\\ud83d\\ude00\U0001f600","token_ids":[1]}}\n'.encode()
    text = ""
    for place in (1, 8, *range(cut.index("é".encode()), cut.index(b'"token_ids"'), 3), len(cut) - 1):
        # The line ahead is awaited, so that the host has read the cut one up to there.
        worker.say(lines.token(id, "|"), cut[:place])
        play.driver.expect_text("a", text := f"{text}|")
        worker.say(cut[place:])
        play.driver.expect_text("a", text := f"{text}é漢é\U0001f600\U0001f600")
    worker.say(lines.result(id))
    play.driver.expect_done("a", text=text)


@case("F-11")
def lines_come_byte_by_byte(play: Play) -> None:
    """The reply to `hello` and an answer, written a byte at a time."""
    worker = play.spawn()
    for byte in lines.line(lines.greeting(worker.expect("hello").id)):
        worker.say(bytes([byte]))
    play.driver.expect_start("started")
    id = play.request("a").id
    for byte in lines.line(lines.token(id, "漢字")) + lines.line(lines.result(id)):
        worker.say(bytes([byte]))
    worker.forget(id)
    play.driver.expect_done("a", text="漢字")


@case("F-13", "F-15", "F-8")
def text_arrives_as_it_was_written(play: Play) -> None:
    """Escaped or not, in every plane, joined and not normalised."""
    worker = play.start()
    id = play.request("a").id
    escaped = r"\u0041\/\"\\\b\f\n\r\t\u0000\u001f\ud83d\ude00\u2028\u2029\u0085\ufeff"
    worker.say(
        f'{{"event":"token","id":"{id}","token":"{escaped}","token_ids":[1]}}\n'.encode(),
        lines.token(id, "é 漢 \U0001f600 \x7f \u2028 \u2029 \u0085 \ufeff \uffff"),
        lines.token(id, "e"),
        lines.token(id, "\u0301"),
        lines.token(id, "\U0001f468\u200d"),
        lines.token(id, "\U0001f469"),
        lines.result(id),
    )
    text = 'A/"\\\b\f\n\r\t\x00\x1f\U0001f600\u2028\u2029\u0085\ufeff'
    text += "é 漢 \U0001f600 \x7f \u2028 \u2029 \u0085 \ufeff \uffffe\u0301\U0001f468\u200d\U0001f469"
    play.driver.expect_done("a", text=text)


@case("F-17", "F-11")
def members_come_in_any_order(play: Play) -> None:
    """And with any white space, and any spelling of a string or a number."""
    worker = play.start()
    id = play.request("a").id
    spelled = "".join(f"\\u{ord(character):04x}" for character in id)
    done = dict(reversed(lines.result(id).items()))
    worker.say(
        f'{{ "token_ids" : [ 1 , 2 ] ,\t"token" : "a" , "id" : "{spelled}" , "event" : "\\u0074oken" }}\r\n'.encode(),
        json.dumps(done, indent=None, separators=(" ,  ", " : ")).encode().replace(b"2.5", b"25e-1") + b"\n",
    )
    worker.forget(id)
    play.driver.expect_done("a", text="a")


_NULLS: dict[str, dict[str, Any]] = {
    "token": {"new": None},
    "progress": {"total": None, "new": None},
    "done": {"stop": None, "new": None},
    "timings": {"prefill_ms": None, "first_token_ms": None, "prompt_tps": None, "decode_tps": None},
}


@case("F-16")
def null_is_absent(play: Play) -> None:
    """A member that may be absent can be null instead."""
    worker = play.start()
    id = play.request("a").id
    done = lines.result(id) | _NULLS["done"]
    worker.say(
        lines.progress(id) | _NULLS["progress"],
        lines.token(id, "a") | _NULLS["token"],
        done | {"timings": done["timings"] | _NULLS["timings"]},
    )
    play.driver.expect_done("a", text="a")
    worker.say(lines.error(play.request("b").id, "busy", retryable=True, field=None, bad_id=None, loaded=None))
    play.driver.expect_failed("b", "busy", retryable=True)
    worker.say(lines.model(play.request("c", "load", path="/models/played").id) | {"quantization": None})
    play.driver.expect_done("c", finish_reason=None)


@case("F-16", "T-2")
def an_error_whose_id_is_null_ends_nothing(play: Play) -> None:
    """A null `id` is none."""
    worker = play.start()
    id = play.request("a").id
    worker.say(lines.error(None, "parse_error") | {"id": None}, lines.token(id, "on"), lines.result(id))
    play.driver.expect_done("a", text="on")


@case("T-2", "I-3", "I-5")
def an_error_without_an_id_ends_nothing(play: Play) -> None:
    """It is about a line that is no request, even when `bad_id` names one."""
    worker = play.start()
    id = play.request("a").id
    worker.say(lines.token(id, "it goes "), lines.error(None, "duplicate_id", bad_id=id))
    worker.say(lines.error(None, "parse_error"), lines.error(None, "invalid_request", field="id"))
    worker.say(lines.token(id, "on"), lines.result(id))
    play.driver.expect_done("a", text="it goes on")


_NEW: dict[str, Any] = {
    "new": {"deep": [1, None, {"er": "x"}]},
    "choice": 0,
    "code": "x",
    "finish_reason": "x",
    "state": "x",
}


@case("V-4")
def unknown_fields_are_ignored(play: Play) -> None:
    """In every event, at any depth."""
    worker = play.spawn()
    greeting = lines.greeting(worker.expect("hello").id)
    worker.say({**_NEW, **greeting, "limits": {**greeting["limits"], "new": 1}})
    play.driver.expect_start("started")
    id = play.request("a").id
    done = lines.result(id)
    inner = {name: {**done[name], **_NEW} for name in ("usage", "timings")}
    worker.say({**_NEW, **lines.progress(id)}, {**_NEW, **lines.token(id, "a")}, {**_NEW, **done, **inner})
    play.driver.expect_done("a", text="a")
    worker.say({**_NEW, **lines.error(play.request("b").id, "engine_error")})
    play.driver.expect_failed("b", "engine_error", retryable=False)


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
def an_end_that_lacks_its_fields_is_an_end(play: Play) -> None:
    """The request succeeds or is lost, as the host sees fit, but nobody waits for it any longer."""
    worker = play.start()
    worker.say_last(lines.bare(play.request("a").id))
    play.driver.expect_end("a")


@case("V-4")
def unknown_events_are_ignored(play: Play) -> None:
    """They end no request and bring no text, whether they have its id or none, before and after `hello`."""
    worker = play.spawn()
    hello = worker.expect("hello")
    worker.say(*_unknown_events(hello.id), lines.greeting(hello.id))
    play.driver.expect_start("started")
    id = play.request("a").id
    worker.say(lines.token(id, "a"), *_unknown_events(id), lines.token(id, "b"), lines.result(id))
    play.driver.expect_done("a", text="ab")


@case("V-4")
def unknown_ids_are_ignored(play: Play) -> None:
    """Events for requests that the host never made."""
    worker = play.start()
    id = play.request("a").id
    unknown = f"not {id}"
    worker.say(
        lines.token(id, "a"),
        lines.token(unknown, "no"),
        lines.progress(unknown),
        lines.result(unknown),
        lines.error(unknown, "internal"),
        lines.token(id, "b"),
        lines.result(id),
    )
    play.driver.expect_done("a", text="ab")


@case("V-4")
def an_unknown_finish_reason_reads_as_other(play: Play) -> None:
    """The request has ended all the same, and its text is valid."""
    worker = play.start()
    id = play.request("a").id
    worker.say(lines.token(id, "a"), lines.result(id, "new_reason"))
    play.driver.expect_done("a", text="a", finish_reason="other")


@variants({"retryable": True, "final": False}, "V-4")
def an_unknown_code_is_judged_by_retryable(play: Play, retryable: bool) -> None:
    """The request has failed."""
    worker = play.start()
    worker.say(lines.error(play.request("a").id, "new_code", retryable=retryable))
    play.driver.expect_failed("a", None, retryable=retryable)


@case("V-4", "V-3")
def unknown_values_do_no_harm(play: Play) -> None:
    """A `stage`, `unit`, `state`, feature or capability that the host does not know."""
    worker = play.spawn()
    worker.say(lines.greeting(worker.expect("hello").id) | {"features": ["dance", "chat.new"], "engines": ["new"]})
    play.driver.expect_start("started")
    load = play.request("a", "load", path="/models/played").id
    worker.say(lines.progress(load, "new_stage"), lines.progress(load, "read", "new_unit"))
    worker.say(lines.model(load) | {"capabilities": ["generate", "dance"]})
    play.driver.expect_done("a", finish_reason=None)
    worker.say(lines.pong(play.request("b", "ping").id, "new_state"))
    play.driver.expect_done("b", finish_reason=None)


@case("T-1", "V-4")
def what_follows_a_terminal_is_ignored(play: Play) -> None:
    """A second terminal, text after the end: the first terminal counts, and the host goes on."""
    worker = play.start()
    done, failed, other = (play.request(name).id for name in ("a", "b", "c"))
    worker.say(lines.token(done, "a"), lines.result(done), lines.result(done, "length"), lines.token(done, "late"))
    worker.say(lines.error(done, "internal"), lines.error(failed, "engine_error"), lines.result(failed))
    worker.say(lines.token(failed, "late"), lines.progress(failed), lines.token(other, "c"), lines.result(other))
    play.driver.expect_done("a", text="a")
    play.driver.expect_failed("b", "engine_error")
    play.driver.expect_done("c", text="c")


@variants({"busy": ("busy", True), "context-overflow": ("context_overflow", False)}, "T-1", "W-6")
def a_failure_is_passed_on(play: Play, error: tuple[str, bool]) -> None:
    """With its code and whether it can be retried, after the text that came before; others go on."""
    code, retryable = error
    worker = play.start()
    failing, other = play.request("a").id, play.request("b").id
    worker.say(lines.token(failing, "so far"), lines.error(failing, code, retryable=retryable))
    play.driver.expect_failed("a", code, text="so far", retryable=retryable)
    worker.say(lines.result(other))
    play.driver.expect_done("b")


@case("B-4")
def a_load_can_fail_and_the_next_succeed(play: Play) -> None:
    """With progress before both."""
    worker = play.start()
    id = play.request("a", "load", path="/models/none").id
    worker.say(lines.progress(id, "resolve", "steps"), lines.error(id, "model_not_found", field="path", loaded=False))
    play.driver.expect_failed("a", "model_not_found", retryable=False)
    id = play.request("b", "load", path="/models/played").id
    worker.say(lines.progress(id, "read", "bytes"), lines.model(id))
    play.driver.expect_done("b", finish_reason=None)


@case("F-12", "F-14")
def the_longest_line_is_read(play: Play) -> None:
    """61,439 bytes with the newline, and 4,096 token ids."""
    worker = play.start()
    id = play.request("a").id
    text = "x" * (LINE_OUT_BYTES - 1 - len(lines.line(lines.token(id, ""))))
    ids = [MAX_INT // 2**20] * TOKEN_IDS
    worker.say(lines.token(id, text), lines.token(id, "y", ids), lines.result(id) | {"seed": MAX_INT})
    play.driver.expect_done("a", text=f"{text}y")


@case("H-2", "W-2")
def a_burst_is_read_whole(play: Play) -> None:
    """20,000 events in one write, and a flood on stderr in the middle."""
    worker = play.start()
    id = play.request("a").id
    burst = b"".join(lines.line(lines.token(id, f"{number} ")) for number in range(10_000))
    worker.say(burst)
    worker.flood_stderr()
    worker.say(burst, lines.result(id))
    play.driver.expect_done("a", text="".join(f"{number} " for number in range(10_000)) * 2)
