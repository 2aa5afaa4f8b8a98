"""The response object: the request's fields, the output, the status and the usage."""

from collections.abc import Sequence
from time import time
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from lmwire_protocol import events
from lmwire_protocol.json_value import JsonValue

from ...errors import ApiError
from ...inference.generation import finish_reason
from .items import OutputItem, item_id
from .request import ResponseRequest, wants_logprobs
from .tools import Tool, ToolChoice

ResponseStatus: TypeAlias = Literal["in_progress", "completed", "incomplete", "failed"]


class InputDetails(Struct, kw_only=True):
    """Details of the prompt's tokens."""

    cached_tokens: int
    cache_write_tokens: int = 0
    """Always 0: cached tokens cost nothing."""


class OutputDetails(Struct, kw_only=True):
    """Details of the answer's tokens."""

    reasoning_tokens: int


class Usage(Struct, kw_only=True):
    """Token counts of a response."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class IncompleteDetails(Struct, kw_only=True):
    """The reason of an incomplete answer. OpenAI's clients know only this one for all limits."""

    reason: Literal["max_output_tokens"] = "max_output_tokens"


class ResponseError(Struct, kw_only=True):
    """The error of a failed response."""

    code: str
    message: str
    retryable: bool
    """True if the same request may succeed later."""
    request_id: str


class Response(Struct, kw_only=True):
    """The answer to a conversation. Most fields are those of the request, or their defaults."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    """Time of the request, in seconds since 1970."""
    completed_at: int | None = None
    status: ResponseStatus = "in_progress"
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    output: list[OutputItem] = []
    usage: Usage | None = None
    model: str
    instructions: str | None
    previous_response_id: str | None
    tools: Any
    tool_choice: Any
    parallel_tool_calls: bool
    text: Any
    reasoning: Any
    max_output_tokens: int | None
    temperature: float
    top_p: float
    top_logprobs: int
    truncation: Literal["auto", "disabled"]
    metadata: dict[str, str]
    store: bool
    user: str | None
    background: Literal[False] = False
    top_k: int | UnsetType = UNSET
    """lmwire's own field, as is the next one; present if the request has it."""
    min_p: float | UnsetType = UNSET


def new_response(body: ResponseRequest, tools: Sequence[Tool | None], choice: ToolChoice | None) -> Response:
    """Return a response without output.

    Args:
        body: The request's body.
        tools: Its tools. None is one that is left out.
        choice: Its choice among them.
    """
    return Response(
        id=item_id("resp"),
        created_at=int(time()),
        model=body.model,
        instructions=body.instructions,
        previous_response_id=body.previous_response_id,
        tools=_without_nulls([tool for tool in tools if tool]),
        tool_choice="auto" if choice is None else _without_nulls(choice),
        parallel_tool_calls=body.parallel_tool_calls is not False,
        text={"format": {"type": "text"}} | (_without_nulls(body.text) if body.text else {}),
        reasoning={"effort": None, "summary": None} | (_without_nulls(body.reasoning) if body.reasoning else {}),
        max_output_tokens=body.max_output_tokens,
        temperature=1.0 if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        top_logprobs=(body.top_logprobs or 0) if wants_logprobs(body) else 0,
        top_k=UNSET if body.top_k is None else body.top_k,
        min_p=UNSET if body.min_p is None else body.min_p,
        truncation=body.truncation or "disabled",
        metadata=body.metadata or {},
        store=body.store is not False,
        user=body.user,
    )


def is_incomplete(result: events.ResultDone) -> bool:
    """Return whether the answer reached a limit.

    Raises:
        ApiError: The server has cancelled the answer.
    """
    return finish_reason(result.finish_reason) == "length"


def finish_response(response: Response, output: list[OutputItem], result: events.ResultDone) -> Response:
    """Return the response with its finished answer.

    Args:
        response: The response in progress.
        output: The items of the output.
        result: The worker's result.

    Raises:
        ApiError: The server has cancelled the answer.
    """
    cut = is_incomplete(result)
    return msgspec.structs.replace(
        response,
        status="incomplete" if cut else "completed",
        incomplete_details=IncompleteDetails() if cut else None,
        completed_at=None if cut else int(time()),
        output=output,
        usage=_usage(result.usage),
    )


def fail_response(response: Response, output: list[OutputItem], error: ApiError, request_id: str) -> Response:
    """Return the response with an error.

    Args:
        response: The response in progress.
        output: The items of the output so far.
        error: The error.
        request_id: The HTTP request's id.
    """
    problem = ResponseError(
        code=_error_code(error), message=error.message, retryable=error.retryable, request_id=request_id
    )
    return msgspec.structs.replace(response, status="failed", error=problem, output=output)


def _error_code(error: ApiError) -> str:
    """Return the code by which clients decide whether to send a request again, or a shorter one."""
    if error.code == "context_overflow":
        return "context_length_exceeded"
    if error.status == 429:
        return "rate_limit_exceeded"
    return "server_error" if error.status >= 500 else "invalid_prompt"


def _usage(used: events.Usage) -> Usage:
    return Usage(
        input_tokens=used.prompt_tokens,
        input_tokens_details=InputDetails(cached_tokens=used.cached_tokens),
        output_tokens=used.completion_tokens,
        output_tokens_details=OutputDetails(reasoning_tokens=used.reasoning_tokens),
        total_tokens=used.prompt_tokens + used.completion_tokens,
    )


def _without_nulls(value: Any) -> Any:
    """Return the value without its null fields."""
    plain: JsonValue = msgspec.to_builtins(value)
    match plain:
        case dict() as fields:
            return {name: field for name, field in fields.items() if field is not None}
        case list() as items:
            return [_without_nulls(item) for item in items]
        case _:
            return plain
