"""Whole answers, put together from their pieces."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from lmwire_protocol import events

from .errors import LmwireError
from .options import MessageDict
from .pieces import CallPiece, Piece


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model calls."""

    id: str
    name: str
    """The function's name."""
    arguments: dict[str, Any]

    def result(self, content: str) -> MessageDict:
        """The message that tells the model what the call came to, for the conversation's next turn."""
        return {"role": "tool", "tool_call_id": self.id, "name": self.name, "content": content}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One whole answer."""

    text: str
    reasoning: str
    """What the model thought before; empty when it did not."""
    tool_calls: list[ToolCall]
    """The whole calls, in order. One that was cut off is part of `text`."""
    finish_reason: str
    """As in `ResultDone`."""
    stop: str | None
    """The stop string that ended it."""
    token_ids: list[int]
    """The tokens that were shown, thoughts included."""
    logprobs: list[events.Logprob]
    """One for each of token_ids, if asked for."""

    @property
    def message(self) -> MessageDict:
        """The answer as a message, for the conversation's next turn.

        A request's `prefix` is not in it: who asked for one puts it before the content.
        """
        message: MessageDict = {"role": "assistant", "content": self.text}
        if self.reasoning:
            message["reasoning"] = self.reasoning
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "name": call.name, "arguments": call.arguments} for call in self.tool_calls
            ]
        return message


def whole_answers(pieces: Sequence[Piece | CallPiece], result: events.ResultDone) -> list[Answer]:
    """The answers of a request that has ended, in the order of their choices."""
    return [
        whole_answer([piece for piece in pieces if piece.choice == choice], end.finish_reason, end.stop)
        for choice, end in enumerate(result.choices or [result])
    ]


def whole_answer(pieces: Sequence[Piece | CallPiece], finish_reason: str, stop: str | None = None) -> Answer:
    """The answer that the pieces, all of one choice, make.

    Raises:
        LmwireError: the arguments of a whole call are no JSON object.
    """
    texts = [piece for piece in pieces if isinstance(piece, Piece)]
    return Answer(
        text="".join(piece.text for piece in texts),
        reasoning="".join(piece.reasoning for piece in texts),
        tool_calls=_calls(piece for piece in pieces if isinstance(piece, CallPiece)),
        finish_reason=finish_reason,
        stop=stop,
        token_ids=[token_id for piece in texts for token_id in piece.token_ids],
        logprobs=[logprob for piece in texts for logprob in piece.logprobs or ()],
    )


def _calls(pieces: Iterable[CallPiece]) -> list[ToolCall]:
    calls: dict[int, list[CallPiece]] = {}
    for piece in pieces:
        calls.setdefault(piece.index, []).append(piece)
    return [_call(parts) for _, parts in sorted(calls.items()) if parts[-1].complete]


def _call(parts: list[CallPiece]) -> ToolCall:
    name = parts[0].name or ""
    written = "".join(part.arguments for part in parts)
    try:
        arguments = msgspec.json.decode(written, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise LmwireError(f"the worker's call of {name!r} has arguments that are no object: {written!r}") from error
    return ToolCall(parts[0].call_id or "", name, arguments)
