"""A chat completion: the whole answer at once."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from lmwire import Answer, CallPiece, Piece
from lmwire_protocol import events

from ...inference.partial_tool_calls import Arguments
from ..logprobs import Logprobs, content_logprobs
from ..usage import FinishReason, Usage, finish_reason, usage_of


class CalledFunction(Struct, kw_only=True):
    """What to call."""

    name: str
    arguments: str
    """A JSON object's text; of a call that is cut off the beginning of one, which is no JSON."""


class Called(Struct, kw_only=True):
    """A call that the model makes."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class ReplyMessage(Struct, kw_only=True):
    """The answer, as a message for the conversation's next turn."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    """Null where there is nothing but calls."""
    refusal: None = None
    reasoning_content: str | UnsetType = UNSET
    """What the model thought before."""
    tool_calls: list[Called] | UnsetType = UNSET


class ReplyChoice(Struct, kw_only=True):
    """One of `n` answers."""

    index: int
    message: ReplyMessage
    logprobs: Logprobs | None
    finish_reason: FinishReason


class ChatCompletion(Struct, kw_only=True):
    """The answers to a conversation."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    """Seconds since 1970."""
    model: str
    choices: list[ReplyChoice]
    usage: Usage


class Choice(NamedTuple):
    """One of `n` answers, as it is told over HTTP."""

    answer: Answer
    logprobs: Logprobs | None
    calls: list[Called]
    content: str
    reasoning: str


def choices_of(pieces: Sequence[Piece | CallPiece], answers: Sequence[Answer], *, logprobs: bool) -> list[Choice]:
    """Return the answers, without the text of calls that are none.

    Args:
        pieces: What came, of all choices.
        answers: What the client library makes of it.
        logprobs: Whether they were asked for.
    """
    choices = []
    for index, answer in enumerate(answers):
        own = [piece for piece in pieces if piece.choice == index]
        told = [token for piece in own for token in content_logprobs(piece)]
        text = "".join([piece.text for piece in own if not piece.call])
        thought = "".join([piece.reasoning for piece in own if not piece.call])
        choices.append(Choice(answer, Logprobs(content=told) if logprobs else None, called(own), text, thought))
    return choices


def chat_completion(id: str, created: int, model: str, choices: list[Choice], usage: events.Usage) -> ChatCompletion:
    """The reply. Raises ApiError where the server has cancelled the answers."""
    return ChatCompletion(
        id=id,
        created=created,
        model=model,
        choices=[
            ReplyChoice(
                index=index,
                message=_message(choice),
                logprobs=choice.logprobs,
                finish_reason=finish_reason(choice.answer.finish_reason),
            )
            for index, choice in enumerate(choices)
        ],
        usage=usage_of(usage),
    )


def called(pieces: Iterable[Piece | CallPiece]) -> list[Called]:
    """Return the calls of a choice as a stream passes them on, the one that is cut off too."""
    calls: dict[int, tuple[Called, Arguments]] = {}
    for piece in pieces:
        if isinstance(piece, CallPiece):
            if piece.index not in calls:
                function = CalledFunction(name=piece.name or "", arguments="")
                calls[piece.index] = Called(id=piece.call_id or "", function=function), Arguments()
            call, arguments = calls[piece.index]
            call.function.arguments += arguments.pass_on(piece.arguments, piece.complete)
    return [call for call, _ in calls.values()]


def _message(choice: Choice) -> ReplyMessage:
    return ReplyMessage(
        content=choice.content or (None if choice.calls else ""),
        reasoning_content=choice.reasoning or UNSET,
        tool_calls=choice.calls or UNSET,
    )
