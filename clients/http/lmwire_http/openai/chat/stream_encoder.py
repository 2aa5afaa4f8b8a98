"""A chat completion as a stream: chunks in the order in which OpenAI's API sends them.

Of each choice: its role; thoughts, text and calls as they come; how it ended. Then the usage, if asked for, `[DONE]`.

Calls are passed on as they come, too, since an argument can be a whole file. What was sent cannot be taken back, as the
wire does with a call that turns out to be none ([Q-2]): so the braces that would make the arguments whole are held back
until the call is. A client is left with what OpenAI's API leaves it with when an answer is cut off inside a call:
arguments that are no JSON, which its documentation tells to expect. The call's text is never content as well.
"""

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from lmwire import CallPiece, Piece
from lmwire_protocol import events

from ...http.sse import DONE, TextEventTemplate, data_event
from ...inference.partial_tool_calls import Arguments
from ..logprobs import Logprobs, content_logprobs
from ..usage import FinishReason, Usage, finish_reason, usage_of


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
        self._texts: dict[tuple[int, str], TextEventTemplate] = {}
        """By choice, of those that have begun, and channel."""
        self._calls: dict[tuple[int, int], Arguments] = {}

    def pieces(self, batch: list[Piece | CallPiece]) -> bytes:
        """The frames of what came together."""
        return b"".join([self._frames(piece) for piece in batch])

    def end(self, result: events.ResultDone) -> bytes:
        """The last frames. Raises ApiError where the server has cancelled the answer."""
        choices: list[ChunkChoice] = []
        for index, choice in enumerate(result.choices or [result]):
            reason = finish_reason(choice.finish_reason)
            choices += self._begin(index)
            choices.append(ChunkChoice(index=index, delta=Delta(), finish_reason=reason))
        frames = [self._frame(choice) for choice in choices]
        if self._usage is None:
            frames.append(data_event(self._chunk(None, usage_of(result.usage))))
        return b"".join([*frames, DONE])

    def _frames(self, piece: Piece | CallPiece) -> bytes:
        # Most pieces are mere text: what a token costs the server is spent here.
        if isinstance(piece, Piece) and piece.token and not (piece.logprobs or piece.call):
            texts = self._texts.get((piece.choice, piece.channel))
            if texts:
                return texts.event(piece.token)
        return b"".join([self._frame(choice) for choice in self._choices(piece)])

    def _choices(self, piece: Piece | CallPiece) -> list[ChunkChoice]:
        """What goes into chunks."""
        index = piece.choice
        choices = self._begin(index)
        if isinstance(piece, CallPiece):
            choices += [_choice(index, Delta(tool_calls=[delta])) for delta in self._call_deltas(piece)]
        elif piece.call:
            pass  # the client has it as a call already, or it is a call's beginning
        elif thought := piece.reasoning:
            choices.append(_choice(index, Delta(reasoning_content=thought)))
        elif (logprobs := content_logprobs(piece)) or piece.text:
            choices.append(_choice(index, Delta(content=piece.text), Logprobs(content=logprobs) if logprobs else None))
        return choices

    def _begin(self, index: int) -> list[ChunkChoice]:
        if (index, "content") in self._texts:
            return []
        self._texts[index, "content"] = self._texts_as(index, lambda text: Delta(content=text))
        self._texts[index, "reasoning"] = self._texts_as(index, lambda text: Delta(reasoning_content=text))
        return [_choice(index, Delta(role="assistant", content="", refusal=None))]

    def _texts_as(self, index: int, delta: Callable[[str], Delta]) -> TextEventTemplate:
        return TextEventTemplate(lambda text: self._chunk(_choice(index, delta(text))))

    def _call_deltas(self, piece: CallPiece) -> Iterator[CallDelta]:
        key = piece.choice, piece.index
        if (call := self._calls.get(key)) is None:
            call = self._calls[key] = Arguments()
            function = FunctionDelta(name=piece.name or "", arguments="")
            yield CallDelta(index=piece.index, id=piece.call_id or "", type="function", function=function)
        if arguments := call.pass_on(piece.arguments, piece.complete):
            yield CallDelta(index=piece.index, function=FunctionDelta(arguments=arguments))

    def _frame(self, choice: ChunkChoice) -> bytes:
        return data_event(self._chunk(choice))

    def _chunk(self, choice: ChunkChoice | None, usage: Usage | None = None) -> Chunk:
        return Chunk(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=[] if choice is None else [choice],
            usage=usage or self._usage,
        )


def _choice(index: int, delta: Delta, logprobs: Logprobs | None = None) -> ChunkChoice:
    return ChunkChoice(index=index, delta=delta, logprobs=logprobs)
