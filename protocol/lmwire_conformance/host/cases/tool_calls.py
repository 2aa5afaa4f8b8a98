"""Tool calls: the host joins their parts, and runs no call that is not whole."""

from collections.abc import Callable
from typing import Any

from .. import wire
from ..context import CaseContext
from ..played_worker import PlayedWorker
from .registry import case, variants

_TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": name, "parameters": {}}} for name in ("weather", "news")
]


def _call(id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": id, "name": name, "arguments": arguments}


_TEXT = '{"city":"R\\u00f6m \\"漢\\"","days":[1,2.5,null],"deep":{"a":true}}'
_ARGUMENTS = {"city": 'Röm "漢"', "days": [1, 2.5, None], "deep": {"a": True}}
_SPLITS = {
    "at-once": [_TEXT],
    "in-two": [_TEXT[:9], _TEXT[9:]],
    "by-characters": list(_TEXT),
    "with-empty-parts": ["", _TEXT[:20], "", _TEXT[20:], ""],
}


@variants(_SPLITS, "Q-1", "P-4")
def joins_the_parts_of_a_call(context: CaseContext, parts: list[str]) -> None:
    """Join the arguments, wherever they are cut, even inside an escape."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS).id
    worker.write(wire.token(id, "I look."), wire.token(id, ""))
    first, *rest = parts
    events = [wire.tool_call(id, call_id="c1", name="weather", arguments=first)]
    events += [wire.tool_call(id, arguments=part) for part in rest]
    events[-1]["complete"] = True
    worker.write(*events, wire.token(id, "", [2, 3]), wire.result_done(id, "tool_calls"))
    calls = {0: [_call("c1", "weather", _ARGUMENTS)]}
    context.driver.expect_done("a", text="I look.", finish_reason="tool_calls", calls=calls)


@case("Q-1")
def accepts_call_events_without_arguments(context: CaseContext) -> None:
    """Accept a first event with the name alone, a last one with `complete` alone, and null for absent."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS).id
    worker.write(wire.tool_call(id, call_id="c1", name="weather", arguments=None, complete=None, choice=None))
    worker.write(wire.tool_call(id, call_id=None, name=None, arguments="{}", new=1), wire.tool_call(id, complete=True))
    worker.write(wire.result_done(id, "tool_calls"))
    context.driver.expect_done("a", finish_reason="tool_calls", calls={0: [_call("c1", "weather", {})]})


@case("Q-1", "N-3", "O-1")
def keeps_calls_apart(context: CaseContext) -> None:
    """Tell calls apart by choice and index, while choices interleave."""
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


@case("Q-2", "P-3", "K-5")
def passes_the_text_of_a_cut_off_call_on(context: CaseContext) -> None:
    """Drop a call that was cut off, and pass its text on, although the events are marked with `call`."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS, max_tokens=3).id
    worker.write(wire.tool_call(id, call_id="c1", name="weather", arguments='{"city":"R'))
    worker.write(wire.tool_call(id, complete=False), wire.token(id, '<tool_call>{"city":"R', [], call=True))
    worker.write(wire.result_done(id, "length"))
    context.driver.expect_done("a", text='<tool_call>{"city":"R', finish_reason="length")


@case("Q-2", "P-3", "P-4")
def drops_only_the_calls_that_are_incomplete(context: CaseContext) -> None:
    """Drop a call whose last event has `complete` false, although its arguments look whole."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS).id
    for index, whole in enumerate((True, False, True)):
        worker.write(wire.tool_call(id, index, call_id=f"c{index}", name="news", arguments="{}"))
        worker.write(wire.tool_call(id, index, complete=whole))
    worker.write(wire.token(id, "<tool_call>{} ?", [], call=True), wire.result_done(id, "tool_calls"))
    calls = {0: [_call("c0", "news", {}), _call("c2", "news", {})]}
    context.driver.expect_done("a", text="<tool_call>{} ?", finish_reason="tool_calls", calls=calls)


@case("Q-2", "C-4")
def passes_the_text_of_a_cancelled_call_on(context: CaseContext) -> None:
    """Pass on the text of a call that a cancel cut off."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS).id
    worker.write(wire.token(id, "I look."), wire.tool_call(id, call_id="c1", name="news", arguments="{"))
    context.driver.expect_text("a", "I look.")
    context.driver.cancel("a")
    cancel = worker.expect("cancel")
    worker.write(wire.cancel_done(cancel.id, 1), wire.tool_call(id, complete=False), wire.token(id, "{", [], call=True))
    worker.write(wire.result_done(id, "cancelled"))
    context.driver.expect_done("a", text="I look.{", finish_reason="cancelled")


_NO_OBJECTS = {"no-json": '{"city":', "a-list": "[1]", "a-string": '"Rome"', "nothing": "", "two": "{}{}"}


@variants(_NO_OBJECTS, "Q-2")
def runs_no_call_whose_arguments_are_no_object(context: CaseContext, arguments: str) -> None:
    """Report no call whose arguments are not one JSON object, although it is complete. The request may fail."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS).id
    worker.write(wire.tool_call(id, call_id="c1", name="weather", arguments=arguments, complete=True))
    worker.write_last(wire.result_done(id, "tool_calls"))
    end = context.driver.end_of("a")
    if end["saw"] == "done":
        context.driver.expect_done("a", finish_reason=None)
    worker = context.worker
    if not worker.ended:  # the others go on, or the worker is lost as a whole
        worker.write(wire.result_done(context.request("b").id))
        context.driver.expect_done("b")


_FAILURES: dict[str, Callable[[PlayedWorker, str], None]] = {
    "error": lambda worker, id: worker.write(wire.error(id, "engine_error")),
    "death": lambda worker, id: worker.end(70),
}


@variants(_FAILURES, "Q-2", "T-3")
def drops_a_call_without_a_last_event(context: CaseContext, end: Callable[[PlayedWorker, str], None]) -> None:
    """Drop a call whose last event never came, although its arguments are whole."""
    worker = context.start()
    id = context.request_chat("a", tools=_TOOLS).id
    worker.write(wire.tool_call(id, call_id="c1", name="news", arguments="{}"))
    end(worker, id)
    context.driver.expect_failed("a", None)
