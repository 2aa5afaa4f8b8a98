"""Responses that have generated text: whole answers, and lines of streams."""

from datetime import UTC, datetime
from time import monotonic
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from ..http.context import RequestContext
from ..inference.answers import TokenLogprob
from ..inference.generation import Generation, finish_reason


def utc_now() -> datetime:
    """Return the time now."""
    return datetime.now(UTC)


class CalledFunction(Struct, kw_only=True):
    """The function of a call."""

    index: int
    name: str
    arguments: Any
    """A JSON object."""


class ToolCall(Struct, kw_only=True):
    """A tool call of the model."""

    id: str
    function: CalledFunction


class Line(Struct, kw_only=True):
    """A part of an answer, or the whole. Times are in nanoseconds."""

    model: str
    """The model's name in the request."""
    created_at: datetime = field(default_factory=utc_now)
    done: bool = False
    done_reason: Literal["stop", "length", "load", "unload"] | UnsetType = UNSET
    total_duration: int | UnsetType = UNSET
    """Time from the request's head to the end of the answer."""
    load_duration: int | UnsetType = UNSET
    """The part of it before a worker with the model was ready."""
    prompt_eval_count: int | UnsetType = UNSET
    """Tokens of the prompt, cached ones included."""
    prompt_eval_duration: int | UnsetType = UNSET
    eval_count: int | UnsetType = UNSET
    """Tokens of the answer."""
    eval_duration: int | UnsetType = UNSET
    logprobs: list[TokenLogprob] | UnsetType = UNSET
    """The tokens of the content."""


class AnswerMessage(Struct, kw_only=True):
    """The answer, or a part of it."""

    role: Literal["assistant"] = "assistant"
    content: str = ""
    thinking: str | UnsetType = UNSET
    tool_calls: list[ToolCall] | UnsetType = UNSET


class ChatResponse(Line, kw_only=True):
    """The response of /api/chat, or a line of its stream."""

    message: AnswerMessage


class GenerateResponse(Line, kw_only=True):
    """The response of /api/generate, or a line of its stream."""

    response: str = ""
    thinking: str | UnsetType = UNSET


def end_fields(context: RequestContext, generation: Generation) -> dict[str, Any]:
    """Return the fields of the last line of an answer.

    Args:
        context: The request's context.
        generation: The finished generation.

    Raises:
        ApiError: The server has cancelled the answer.
    """
    result = generation.result
    usage, timings = result.usage, result.timings
    prefill_ms = timings.prefill_ms or 0
    return {
        "done": True,
        "done_reason": "length" if finish_reason(result.finish_reason) == "length" else "stop",
        "total_duration": _nanoseconds(monotonic() - context.started_at),
        "load_duration": _nanoseconds(generation.started_at - context.started_at),
        "prompt_eval_count": usage.prompt_tokens,
        "prompt_eval_duration": _nanoseconds(prefill_ms / 1000),
        "eval_count": usage.completion_tokens,
        "eval_duration": _nanoseconds((timings.total_ms - timings.queued_ms - prefill_ms) / 1000),
    }


def _nanoseconds(seconds: float) -> int:
    return max(1, round(seconds * 1e9))  # clients divide by durations
