"""Hosts with faults in choices, channels, tool calls, vectors, transcripts and speeches."""

from collections.abc import Callable
from typing import Any

import lmwire.protocol.results
import lmwire.responses.answer
import lmwire.responses.asyncio_stream
import lmwire.responses.stream
import lmwire.responses.values
from lmwire import ClientSession, LmwireError, TokenDelta, ToolCallDelta
from lmwire.base_worker import BaseWorker
from lmwire.responses.answer import ToolCall
from support.protocol.mutation import mutant, replace, wrap


def change_deltas(change: Callable[[TokenDelta], None]) -> None:
    """Change each text event before the client delivers it."""

    def receive(original: Any, self: Any, data: bytes) -> Any:
        arrivals = original(self, data)
        for arrival in arrivals:
            for event in arrival.events:
                if isinstance(event, TokenDelta):
                    change(event)
        return arrivals

    wrap(ClientSession, "receive", receive)


@mutant("N-3", "choices.keeps-choices-apart")
def knows_no_choices() -> None:
    change_deltas(lambda delta: setattr(delta, "choice", 0))


@mutant("K-5", "choices.keeps-channels-apart")
def shows_reasoning() -> None:
    change_deltas(lambda delta: setattr(delta, "channel", "content"))


@mutant("K-1", "choices.keeps-channels-apart")
def drops_reasoning() -> None:
    replace(TokenDelta, "reasoning", "")


@mutant("V-4", "choices.shows-no-text-of-an-unknown-channel")
def shows_what_it_does_not_know() -> None:
    def change(delta: TokenDelta) -> None:
        if delta.channel != "reasoning":
            delta.channel = "content"

    change_deltas(change)


@mutant("K-7", "choices.passes-log-probabilities-on")
def loses_the_log_probabilities_of_empty_texts() -> None:
    def change(delta: TokenDelta) -> None:
        if not delta.token:
            delta.logprobs = None

    change_deltas(change)


@mutant("V-4", "choices.reads-an-unknown-finish-reason-of-a-choice-as-other")
def passes_an_unknown_end_of_a_choice_on() -> None:
    wrap(lmwire.protocol.results, "_known_or_other", lambda original, finish_reason: finish_reason)


@mutant("V-3", "choices.sends-nothing-that-the-worker-does-not-list:field")
def sends_what_the_worker_does_not_know() -> None:
    wrap(BaseWorker, "_connection_for", lambda original, self, command: self._connection)


@mutant("Q-1", "tool-calls.joins-the-parts-of-a-call:in-two")
def uses_only_the_first_part_of_a_call() -> None:
    wrap(lmwire.responses.answer, "_assemble_call", lambda original, parts: original([parts[-1], *parts[:1]]))


@mutant("Q-1", "tool-calls.keeps-calls-apart")
def mixes_the_calls_of_choices() -> None:
    def answers(original: Any, deltas: list[Any], result: Any) -> Any:
        for delta in deltas:
            if isinstance(delta, ToolCallDelta):
                delta.choice = 0
        return original(deltas, result)

    for module in (lmwire.responses.stream, lmwire.responses.asyncio_stream):
        wrap(module, "assemble_answers", answers)


@mutant("Q-2", "tool-calls.drops-only-the-calls-that-are-incomplete")
def runs_an_incomplete_call() -> None:
    def change(original: Any, deltas: Any) -> Any:
        parts = list(deltas)
        for delta in parts:
            delta.complete = None if delta.complete is None else True
        return original(parts)

    wrap(lmwire.responses.answer, "_assemble_calls", change)


@mutant("Q-2", "tool-calls.passes-the-text-of-a-cut-off-call-on")
def hides_the_text_of_an_incomplete_call() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        return original(self, data.replace(b'"token":"<tool_call>', b'"token":"'))

    wrap(ClientSession, "receive", receive)


@mutant("K-5", "tool-calls.passes-the-text-of-a-cut-off-call-on")
def hides_text_that_is_marked_as_a_call() -> None:
    change_deltas(lambda delta: setattr(delta, "token", "" if delta.call else delta.token))


@mutant("Q-2", "tool-calls.runs-no-call-whose-arguments-are-no-object:no-json")
def runs_a_call_whose_arguments_are_no_json() -> None:
    def assemble(original: Any, parts: list[Any]) -> Any:
        try:
            return original(parts)
        except LmwireError:
            return ToolCall(parts[0].call_id, parts[0].name, {})

    wrap(lmwire.responses.answer, "_assemble_call", assemble)


@mutant("X-2", "results.joins-the-parts-of-a-vector:base64")
def orders_vectors_as_they_come() -> None:
    def assemble(original: Any, parts: Any, count: int) -> Any:
        listed = list(parts)
        order = list(dict.fromkeys(part.index for part in listed))
        vectors = original(listed, count)
        return [vectors[index] for index in order]

    wrap(lmwire.responses.values, "assemble_vectors", assemble)


@mutant("Y-1", "results.joins-the-segments-of-a-transcript")
def strips_segments() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        return original(self, data.replace(b'"text":" Buy', b'"text":"Buy'))

    wrap(ClientSession, "receive", receive)


@mutant("Y-2", "results.joins-the-parts-of-a-speech")
def knows_only_the_first_part_of_a_speech() -> None:
    wrap(lmwire.responses.values, "speech_samples", lambda original, part: b"" if part.index else original(part))
