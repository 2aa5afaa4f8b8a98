"""Tool calls: what a host puts together of their pieces, and what it must not run."""

from collections.abc import Callable
from typing import Any

from .. import lines
from ..play import Play
from ..worker import Worker
from .registry import case, variants

_TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("weather", "news")]


def _call(id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": id, "name": name, "arguments": arguments}


_TEXT = '{"city":"R\\u00f6m \\"漢\\"","days":[1,2.5,null],"deep":{"a":true}}'
_ARGUMENTS = {"city": 'Röm "漢"', "days": [1, 2.5, None], "deep": {"a": True}}
_WAYS = {
    "at-once": [_TEXT],
    "in-two": [_TEXT[:9], _TEXT[9:]],
    "by-characters": list(_TEXT),
    "with-empty-pieces": ["", _TEXT[:20], "", _TEXT[20:], ""],
}


@variants(_WAYS, "Q-1", "P-4")
def a_call_is_its_pieces_joined(play: Play, pieces: list[str]) -> None:
    """However the arguments are cut, the inside of an escape included."""
    worker = play.start()
    id = play.request_chat("a", tools=_TOOLS).id
    worker.say(lines.token(id, "I look."), lines.token(id, ""))
    first, *rest = pieces
    events = [lines.tool_call(id, call_id="c1", name="weather", arguments=first)]
    events += [lines.tool_call(id, arguments=piece) for piece in rest]
    events[-1]["complete"] = True
    worker.say(*events, lines.token(id, "", [2, 3]), lines.result(id, "tool_calls"))
    calls = {0: [_call("c1", "weather", _ARGUMENTS)]}
    play.driver.expect_done("a", text="I look.", finish_reason="tool_calls", calls=calls)


@case("Q-1")
def a_call_can_have_no_piece_of_its_own_in_some_events(play: Play) -> None:
    """Its first event can have the name alone, its last one the end alone, and null is absent."""
    worker = play.start()
    id = play.request_chat("a", tools=_TOOLS).id
    worker.say(lines.tool_call(id, call_id="c1", name="weather", arguments=None, complete=None, choice=None))
    worker.say(lines.tool_call(id, call_id=None, name=None, arguments="{}", new=1), lines.tool_call(id, complete=True))
    worker.say(lines.result(id, "tool_calls"))
    play.driver.expect_done("a", finish_reason="tool_calls", calls={0: [_call("c1", "weather", {})]})


@case("Q-1", "N-3", "O-1")
def calls_are_told_apart(play: Play) -> None:
    """Those of one answer by their index, which each choice counts for itself; choices interleave."""
    worker = play.start()
    id = play.request_chat("a", tools=_TOOLS, n=2).id
    streams = [
        [
            lines.tool_call(id, choice=choice, call_id=f"{city}-0", name="weather", arguments='{"city":'),
            lines.token(id, "", choice=choice),
            lines.tool_call(id, choice=choice, arguments=f'"{city}"}}', complete=True),
            lines.tool_call(id, 1, choice=choice, call_id=f"{city}-1", name="news"),
            lines.tool_call(id, 1, choice=choice, arguments="{}", complete=True),
        ]
        for choice, city in enumerate(("Rome", "Oslo"))
    ]
    for events in zip(*streams, strict=True):
        worker.say(*events)
    worker.say(lines.result(id, "tool_calls", "tool_calls"))
    calls = {
        choice: [_call(f"{city}-0", "weather", {"city": city}), _call(f"{city}-1", "news", {})]
        for choice, city in enumerate(("Rome", "Oslo"))
    }
    play.driver.expect_done("a", finish_reason="tool_calls", choices=["tool_calls", "tool_calls"], calls=calls)


@case("Q-2", "P-3")
def a_call_that_is_cut_off_is_text(play: Play) -> None:
    """The host has nothing to run, and shows what the model wrote."""
    worker = play.start()
    id = play.request_chat("a", tools=_TOOLS, max_tokens=3).id
    worker.say(lines.tool_call(id, call_id="c1", name="weather", arguments='{"city":"R'))
    worker.say(lines.tool_call(id, complete=False), lines.token(id, '<tool_call>{"city":"R', []))
    worker.say(lines.result(id, "length"))
    play.driver.expect_done("a", text='<tool_call>{"city":"R', finish_reason="length")


@case("Q-2", "P-3", "P-4")
def a_call_that_is_none_leaves_the_others_alone(play: Play) -> None:
    """Even if what came of it looks whole."""
    worker = play.start()
    id = play.request_chat("a", tools=_TOOLS).id
    for index, whole in enumerate((True, False, True)):
        worker.say(lines.tool_call(id, index, call_id=f"c{index}", name="news", arguments="{}"))
        worker.say(lines.tool_call(id, index, complete=whole))
    worker.say(lines.token(id, "<tool_call>{} ?", []), lines.result(id, "tool_calls"))
    calls = {0: [_call("c0", "news", {}), _call("c2", "news", {})]}
    play.driver.expect_done("a", text="<tool_call>{} ?", finish_reason="tool_calls", calls=calls)


@case("Q-2", "C-4")
def a_call_that_a_cancel_cuts_off_is_text(play: Play) -> None:
    """It comes before the terminal."""
    worker = play.start()
    id = play.request_chat("a", tools=_TOOLS).id
    worker.say(lines.token(id, "I look."), lines.tool_call(id, call_id="c1", name="news", arguments="{"))
    play.driver.expect_text("a", "I look.")
    play.driver.do(do="cancel", name="a")
    cancel = worker.expect("cancel")
    worker.say(lines.cancelled(cancel.id, 1), lines.tool_call(id, complete=False), lines.token(id, "{", []))
    worker.say(lines.result(id, "cancelled"))
    play.driver.expect_done("a", text="I look.{", finish_reason="cancelled")


_ENDS: dict[str, Callable[[Worker, str], None]] = {
    "error": lambda worker, id: worker.say(lines.error(id, "engine_error")),
    "death": lambda worker, id: worker.end(70),
}


@variants(_ENDS, "Q-2", "T-3")
def a_call_without_an_end_is_none(play: Play, end: Callable[[Worker, str], None]) -> None:
    """Though its arguments are whole by themselves."""
    worker = play.start()
    id = play.request_chat("a", tools=_TOOLS).id
    worker.say(lines.tool_call(id, call_id="c1", name="news", arguments="{}"))
    end(worker, id)
    play.driver.expect_failed("a", None)


@case("H-5", "Q-1")
def a_piece_of_no_call_ends_the_worker(play: Play) -> None:
    """A `tool_call` without its `index`."""
    worker = play.start()
    id = play.request_chat("a", tools=_TOOLS).id
    worker.hold_sigterm()
    worker.say_last({"event": "tool_call", "id": id, "name": "news", "arguments": "{}"}, lines.result(id))
    worker.expect_killed()
    play.driver.expect_failed("a", "worker_lost")
