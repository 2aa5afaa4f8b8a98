"""Tool calls: what a host puts together of their pieces, and what it must not run."""

from collections.abc import Callable
from typing import Any

from .. import wire
from ..context import CaseContext
from ..played_worker import PlayedWorker
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
def a_call_is_its_pieces_joined(context: CaseContext, pieces: list[str]) -> None:
    """However the arguments are cut, the inside of an escape included."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS).id
    worker.write(wire.token(id, "I look."), wire.token(id, ""))
    first, *rest = pieces
    events = [wire.tool_call(id, call_id="c1", name="weather", arguments=first)]
    events += [wire.tool_call(id, arguments=piece) for piece in rest]
    events[-1]["complete"] = True
    worker.write(*events, wire.token(id, "", [2, 3]), wire.result_done(id, "tool_calls"))
    calls = {0: [_call("c1", "weather", _ARGUMENTS)]}
    context.driver.expect_done("a", text="I look.", finish_reason="tool_calls", calls=calls)


@case("Q-1")
def a_call_can_have_no_piece_of_its_own_in_some_events(context: CaseContext) -> None:
    """Its first event can have the name alone, its last one the end alone, and null is absent."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS).id
    worker.write(wire.tool_call(id, call_id="c1", name="weather", arguments=None, complete=None, choice=None))
    worker.write(wire.tool_call(id, call_id=None, name=None, arguments="{}", new=1), wire.tool_call(id, complete=True))
    worker.write(wire.result_done(id, "tool_calls"))
    context.driver.expect_done("a", finish_reason="tool_calls", calls={0: [_call("c1", "weather", {})]})


@case("Q-1", "N-3", "O-1")
def calls_are_told_apart(context: CaseContext) -> None:
    """Those of one answer by their index, which each choice counts for itself; choices interleave."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS, n=2).id
    streams = [
        [
            wire.tool_call(id, choice=choice, call_id=f"{city}-0", name="weather", arguments='{"city":'),
            wire.token(id, "", choice=choice),
            wire.tool_call(id, choice=choice, arguments=f'"{city}"}}', complete=True),
            wire.tool_call(id, 1, choice=choice, call_id=f"{city}-1", name="news"),
            wire.tool_call(id, 1, choice=choice, arguments="{}", complete=True),
        ]
        for choice, city in enumerate(("Rome", "Oslo"))
    ]
    for events in zip(*streams, strict=True):
        worker.write(*events)
    worker.write(wire.result_done(id, "tool_calls", "tool_calls"))
    calls = {
        choice: [_call(f"{city}-0", "weather", {"city": city}), _call(f"{city}-1", "news", {})]
        for choice, city in enumerate(("Rome", "Oslo"))
    }
    context.driver.expect_done("a", finish_reason="tool_calls", choices=["tool_calls", "tool_calls"], calls=calls)


@case("Q-2", "P-3")
def a_call_that_is_cut_off_is_text(context: CaseContext) -> None:
    """The host has nothing to run, and shows what the model wrote."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS, max_tokens=3).id
    worker.write(wire.tool_call(id, call_id="c1", name="weather", arguments='{"city":"R'))
    worker.write(wire.tool_call(id, complete=False), wire.token(id, '<tool_call>{"city":"R', []))
    worker.write(wire.result_done(id, "length"))
    context.driver.expect_done("a", text='<tool_call>{"city":"R', finish_reason="length")


@case("Q-2", "P-3", "P-4")
def a_call_that_is_none_leaves_the_others_alone(context: CaseContext) -> None:
    """Even if what came of it looks whole."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS).id
    for index, whole in enumerate((True, False, True)):
        worker.write(wire.tool_call(id, index, call_id=f"c{index}", name="news", arguments="{}"))
        worker.write(wire.tool_call(id, index, complete=whole))
    worker.write(wire.token(id, "<tool_call>{} ?", []), wire.result_done(id, "tool_calls"))
    calls = {0: [_call("c0", "news", {}), _call("c2", "news", {})]}
    context.driver.expect_done("a", text="<tool_call>{} ?", finish_reason="tool_calls", calls=calls)


@case("Q-2", "C-4")
def a_call_that_a_cancel_cuts_off_is_text(context: CaseContext) -> None:
    """It comes before the terminal."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS).id
    worker.write(wire.token(id, "I look."), wire.tool_call(id, call_id="c1", name="news", arguments="{"))
    context.driver.expect_text("a", "I look.")
    context.driver.instruct(do="cancel", name="a")
    cancel = worker.expect("cancel")
    worker.write(wire.cancel_done(cancel.id, 1), wire.tool_call(id, complete=False), wire.token(id, "{", []))
    worker.write(wire.result_done(id, "cancelled"))
    context.driver.expect_done("a", text="I look.{", finish_reason="cancelled")


_ENDS: dict[str, Callable[[PlayedWorker, str], None]] = {
    "error": lambda worker, id: worker.write(wire.error(id, "engine_error")),
    "death": lambda worker, id: worker.end(70),
}


@variants(_ENDS, "Q-2", "T-3")
def a_call_without_an_end_is_none(context: CaseContext, end: Callable[[PlayedWorker, str], None]) -> None:
    """Though its arguments are whole by themselves."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS).id
    worker.write(wire.tool_call(id, call_id="c1", name="news", arguments="{}"))
    end(worker, id)
    context.driver.expect_failed("a", None)


@case("H-5", "Q-1")
def a_piece_of_no_call_ends_the_worker(context: CaseContext) -> None:
    """A `tool_call` without its `index`."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS).id
    worker.block_sigterm()
    worker.write_last({"event": "tool_call", "id": id, "name": "news", "arguments": "{}"}, wire.result_done(id))
    worker.expect_killed()
    context.driver.expect_failed("a", "worker_lost")
