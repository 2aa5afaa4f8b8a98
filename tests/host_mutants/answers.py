"""Hosts that mix up choices, channels and tool calls."""

from collections.abc import Callable
from typing import Any

import lmwire.answer
import lmwire.base
import lmwire.dones
from lmwire import CallPiece, Piece, Session
from lmwire.base import BaseWorker
from mutation import mutant, replace, wrap


def change_pieces(change: Callable[[Piece], None]) -> None:
    """Has every piece of text changed before anyone sees it."""

    def receive(original: Any, self: Any, data: bytes) -> Any:
        arrivals = original(self, data)
        for arrival in arrivals:
            for event in arrival.events:
                if isinstance(event, Piece):
                    change(event)
        return arrivals

    wrap(Session, "receive", receive)


@mutant("N-3", "choices.choices-are-told-apart")
def knows_no_choices() -> None:
    change_pieces(lambda piece: setattr(piece, "choice", 0))


@mutant("K-5", "choices.channels-are-told-apart")
def shows_thoughts() -> None:
    change_pieces(lambda piece: setattr(piece, "channel", "content"))


@mutant("K-1", "choices.channels-are-told-apart")
def drops_thoughts() -> None:
    replace(Piece, "reasoning", "")


@mutant("V-4", "choices.text-of-an-unknown-channel-is-not-the-answer")
def shows_what_it_does_not_know() -> None:
    def change(piece: Piece) -> None:
        if piece.channel != "reasoning":
            piece.channel = "content"

    change_pieces(change)


@mutant("K-7", "choices.log-probabilities-arrive")
def loses_the_log_probabilities_of_text_that_is_held_back() -> None:
    def change(piece: Piece) -> None:
        if not piece.token:
            piece.logprobs = None

    change_pieces(change)


@mutant("V-4", "choices.an-unknown-finish-reason-of-a-choice-reads-as-other")
def passes_an_unknown_end_of_a_choice_on() -> None:
    wrap(lmwire.dones, "_known", lambda original, finish_reason: finish_reason)


@mutant("V-3", "choices.what-is-not-listed-is-not-sent:field")
def sends_what_the_worker_does_not_know() -> None:
    wrap(BaseWorker, "_serving", lambda original, self, command: self._connection)


@mutant("Q-1", "tool-calls.a-call-is-its-pieces-joined:in-two")
def takes_the_first_piece_for_the_call() -> None:
    wrap(lmwire.answer, "_call", lambda original, parts: original([parts[-1], *parts[:1]]))


@mutant("Q-1", "tool-calls.calls-are-told-apart")
def mixes_the_calls_of_choices() -> None:
    def answers(original: Any, pieces: list[Any], result: Any) -> Any:
        for piece in pieces:
            if isinstance(piece, CallPiece):
                piece.choice = 0
        return original(pieces, result)

    wrap(lmwire.base, "whole_answers", answers)


@mutant("Q-2", "tool-calls.a-call-that-is-none-leaves-the-others-alone")
def runs_what_is_no_call() -> None:
    def change(original: Any, pieces: Any) -> Any:
        told = list(pieces)
        for piece in told:
            piece.complete = None if piece.complete is None else True
        return original(told)

    wrap(lmwire.answer, "_calls", change)


@mutant("Q-2", "tool-calls.a-call-that-is-cut-off-is-text")
def hides_the_text_of_what_is_no_call() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        return original(self, data.replace(b'"token":"<tool_call>', b'"token":"'))

    wrap(Session, "receive", receive)
