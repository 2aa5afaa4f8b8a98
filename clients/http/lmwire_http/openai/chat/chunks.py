"""A chat completion as a stream: chunks in the order in which OpenAI's API sends them.

Of each choice: its role; thoughts, text and calls as they come; how it ended. Then the usage, if asked for, `[DONE]`.

Calls are passed on as they come, too, since an argument can be a whole file. What was sent cannot be taken back, as the
wire does with a call that turns out to be none ([Q-2]): so the braces that would make the arguments whole are kept back
until the call is. A client is left with what OpenAI's API leaves it with when an answer is cut off inside a call,
arguments that are no JSON, which its documentation tells to expect. The call's text follows as content.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from lmwire import CallPiece, Piece
from lmwire_protocol import events

from ..frames import DONE, data
from ..logprobs import Logprobs, logprobs_of
from ..results import FinishReason, Usage, finish_reason, usage_of

_CLOSING = "} \t\r\n"


class FunctionDelta(Struct, kw_only=True, gc=False):
    """What is called: the name comes first."""

    name: str | UnsetType = UNSET
    arguments: str
    """The next piece of the arguments' JSON text."""


class CallDelta(Struct, kw_only=True):
    """A piece of a call."""

    index: int
    """Which of the answer's calls."""
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET
    function: FunctionDelta


class Delta(Struct, kw_only=True):
    """A piece of the answer."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    refusal: UnsetType | None = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[CallDelta] | UnsetType = UNSET


class ChunkChoice(Struct, kw_only=True):
    """A piece of one of `n` answers."""

    index: int
    delta: Delta
    logprobs: Logprobs | None = None
    finish_reason: FinishReason | None = None


class Chunk(Struct, kw_only=True):
    """A piece of a chat completion."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: Usage | UnsetType | None = UNSET
    """In the last chunk, which has no choices, if it was asked for; null in the others then."""


class ChatChunks:
    """Makes a stream's frames.

    Args:
        usage: Whether to end with the usage.
    """

    def __init__(self, id: str, created: int, model: str, *, usage: bool) -> None:
        self._id, self._created, self._model = id, created, model
        self._usage: UnsetType | None = None if usage else UNSET
        self._begun: set[int] = set()
        self._calls: dict[tuple[int, int], _Call] = {}

    def pieces(self, batch: list[Piece | CallPiece]) -> bytes:
        """The frames of what came together."""
        return b"".join([data(self._chunk(choice)) for piece in batch for choice in self._choices(piece)])

    def end(self, result: events.ResultDone) -> bytes:
        """The last frames. Raises ApiError where the server has cancelled the answer."""
        choices: list[ChunkChoice] = []
        for index, choice in enumerate(result.choices or [result]):
            reason = finish_reason(choice.finish_reason)
            choices += self._begin(index)
            choices.append(ChunkChoice(index=index, delta=Delta(), finish_reason=reason))
        frames = [data(self._chunk(choice)) for choice in choices]
        if self._usage is None:
            frames.append(data(self._chunk(None, usage_of(result.usage))))
        return b"".join([*frames, DONE])

    def _choices(self, piece: Piece | CallPiece) -> list[ChunkChoice]:
        """What goes into chunks. Most pieces are text: what a token costs the server is mostly spent here."""
        index = piece.choice
        choices = [] if index in self._begun else self._begin(index)
        if isinstance(piece, CallPiece):
            deltas = self._call_deltas(piece)
            choices += [ChunkChoice(index=index, delta=Delta(tool_calls=[delta])) for delta in deltas]
        elif text := piece.text:
            logprobs = logprobs_of(piece.logprobs) if piece.logprobs else None
            choices.append(ChunkChoice(index=index, delta=Delta(content=text), logprobs=logprobs))
        elif thought := piece.reasoning:
            choices.append(ChunkChoice(index=index, delta=Delta(reasoning_content=thought)))
        elif piece.logprobs and piece.channel == "content":
            choices.append(ChunkChoice(index=index, delta=Delta(content=""), logprobs=logprobs_of(piece.logprobs)))
        return choices

    def _begin(self, index: int) -> list[ChunkChoice]:
        if index in self._begun:
            return []
        self._begun.add(index)
        return [ChunkChoice(index=index, delta=Delta(role="assistant", content="", refusal=None))]

    def _call_deltas(self, piece: CallPiece) -> Iterator[CallDelta]:
        key = piece.choice, piece.index
        if (call := self._calls.get(key)) is None:
            call = self._calls[key] = _Call()
            function = FunctionDelta(name=piece.name or "", arguments="")
            yield CallDelta(index=piece.index, id=piece.call_id or "", type="function", function=function)
        if arguments := call.passes(piece):
            yield CallDelta(index=piece.index, function=FunctionDelta(arguments=arguments))

    def _chunk(self, choice: ChunkChoice | None, usage: Usage | None = None) -> Chunk:
        return Chunk(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=[] if choice is None else [choice],
            usage=usage or self._usage,
        )


class _Call:
    """What was sent of a call's arguments, and what is kept back."""

    def __init__(self) -> None:
        self._sent = False
        self._kept = ""

    def passes(self, piece: CallPiece) -> str:
        """What may be sent now."""
        written = self._kept + piece.arguments
        if piece.complete:
            return written
        if piece.complete is False:
            return "" if self._sent else "{"  # nothing at all would pass for a call without arguments
        passed = written.rstrip(_CLOSING)
        self._kept = written[len(passed) :]
        self._sent = self._sent or bool(passed)
        return passed
