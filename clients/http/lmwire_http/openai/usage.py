"""How an answer ended, and what it took: the same in several of OpenAI's replies."""

from typing import Literal, TypeAlias

from msgspec import Struct

from lmwire_protocol import events

from ..errors import ApiError

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls"]
_RETRY_S = 1.0


class PromptDetails(Struct, kw_only=True):
    """Of the prompt's tokens."""

    cached_tokens: int


class CompletionDetails(Struct, kw_only=True):
    """Of the answer's tokens."""

    reasoning_tokens: int
    accepted_prediction_tokens: int = 0
    """Those that the draft model of `--draft` had proposed."""


class Usage(Struct, kw_only=True):
    """Tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


def usage_of(*used: events.Usage) -> Usage:
    """What requests took, together."""
    prompt = sum(each.prompt_tokens for each in used)
    completion = sum(each.completion_tokens for each in used)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        prompt_tokens_details=PromptDetails(cached_tokens=sum(each.cached_tokens for each in used)),
        completion_tokens_details=CompletionDetails(
            reasoning_tokens=sum(each.reasoning_tokens for each in used),
            accepted_prediction_tokens=sum(each.draft_accepted for each in used),
        ),
    )


def finish_reason(reason: str) -> FinishReason:
    """The wire's reason as OpenAI's clients know it.

    Whatever cut an answer short is `length` to them: `max_tokens`, the context, `timeout_ms`, or the memory.

    Raises:
        ApiError: the server itself has cancelled the answer, which is no whole one, nor one of the length asked for.
    """
    match reason:
        case "stop" | "tool_calls":
            return reason
        case "cancelled":
            message = "the answer was cancelled before its end, because the server ends or unloads the model"
            raise ApiError(503, message, code="cancelled", retry_after=_RETRY_S)
        case _:
            return "length"
