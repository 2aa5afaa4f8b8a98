"""A chat completion: the whole answer at once."""

from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from lmwire import Answer, ToolCall
from lmwire_protocol import events

from ..logprobs import Logprobs
from ..results import FinishReason, Usage, finish_reason, usage_of


class CalledFunction(Struct, kw_only=True):
    """What to call."""

    name: str
    arguments: str
    """A JSON object's text."""


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


def chat_completion(
    id: str,
    created: int,
    model: str,
    answers: list[Answer],
    logprobs: list[Logprobs] | None,
    usage: events.Usage,
) -> ChatCompletion:
    """The reply. Raises ApiError where the server has cancelled the answers."""
    return ChatCompletion(
        id=id,
        created=created,
        model=model,
        choices=[
            ReplyChoice(
                index=index,
                message=_message(answer),
                logprobs=logprobs[index] if logprobs else None,
                finish_reason=finish_reason(answer.finish_reason),
            )
            for index, answer in enumerate(answers)
        ],
        usage=usage_of(usage),
    )


def _message(answer: Answer) -> ReplyMessage:
    return ReplyMessage(
        content=answer.text or (None if answer.tool_calls else ""),
        reasoning_content=answer.reasoning or UNSET,
        tool_calls=[_called(call) for call in answer.tool_calls] or UNSET,
    )


def _called(call: ToolCall) -> Called:
    arguments = msgspec.json.encode(call.arguments).decode()
    return Called(id=call.id, function=CalledFunction(name=call.name, arguments=arguments))
