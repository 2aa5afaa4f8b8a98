"""A response request as options of the client library."""

import re
from typing import Any, Final

from lmwire import ChatOptions

from ...errors import invalid_field
from ...inference.options import effort_options, given_fields, shared_fields
from ..generation_params import client_field as renamed_option
from ..generation_params import generation_options
from ..response_format import JsonObjectFormat, wire_schema
from ..unsupported_fields import reject_fields
from .request_schema import JsonSchemaFormat, ResponseRequest
from .tool_set import ToolSet

_LOGPROBS: Final = "message.output_text.logprobs"

_UNSUPPORTED: Final = {
    "conversation": "conversations are not supported; continue a response with `previous_response_id`",
    "prompt": "stored prompts are not supported; send their text as `instructions` or `input`",
    "context_management": "edits of a conversation are not supported; send `truncation`, or a shorter conversation",
    "moderation": "moderation is not supported; leave it out",
}
_CONVERTED: Final = (
    *("temperature", "seed", "stop", "logit_bias", "format", "tools", "tool_choice", "strict_media"),
    *("top_logprobs", "reasoning", "reasoning_budget"),
)
_OPTIONS: Final = shared_fields(ResponseRequest, ChatOptions, converted=_CONVERTED)
_FORMAT_FIELD: Final = re.compile(r"^format\b")


def chat_options(body: ResponseRequest, tools: ToolSet) -> ChatOptions:
    """Return all options except the conversation.

    Args:
        body: The request's body.
        tools: Its tools.

    Raises:
        ApiError: A field is not supported, or fields contradict each other.
    """
    _check(body)
    options: Any = {**generation_options(body), **given_fields(body, *_OPTIONS), **tools.options(), **_format(body)}
    options["strict_media"] = body.strict_media is True
    if body.max_output_tokens is not None:
        options["max_tokens"] = body.max_output_tokens
    if body.truncation == "auto":
        options["truncate"] = "left"
    if wants_logprobs(body):
        options.update({"logprobs": True}, **given_fields(body, "top_logprobs"))
    if body.reasoning and body.reasoning.effort:
        options.update(effort_options(body.reasoning.effort))
    options.update(given_fields(body, "reasoning_budget"))
    return options


def wants_logprobs(body: ResponseRequest) -> bool:
    """Return whether the response has log-probabilities: `include` names them, or `top_logprobs` asks for some."""
    return _LOGPROBS in (body.include or ()) or bool(body.top_logprobs)


def client_field(body: ResponseRequest, field: str) -> str:
    """Return the client's name of a worker's field outside of the conversation and the tools.

    Args:
        body: The request's body.
        field: The path of the worker's field.
    """
    if body.format is None and _FORMAT_FIELD.match(field):
        return _FORMAT_FIELD.sub("text.format", field)
    match field:
        case "max_tokens":
            return "max_output_tokens"
        case "truncate" if body.truncation:
            return "truncation"
        case "reasoning" | "reasoning_budget" if body.reasoning_budget is None:
            return "reasoning.effort"
        case _:
            return renamed_option(body, field)


def _check(body: ResponseRequest) -> None:
    reject_fields(body, _UNSUPPORTED)
    if body.background:
        raise invalid_field("background: responses do not run in the background; leave it out, or stream", "background")
    if body.n not in {None, 1}:
        raise invalid_field("n: a response has one answer; send another request for another answer", "n")
    if body.format is not None and body.text and body.text.format:
        raise invalid_field("format: says the same as `text.format`; give one of them", "format")
    if body.truncate is not None and body.truncation is not None:
        raise invalid_field("truncate: says the same as `truncation`; give one of them", "truncate")


def _format(body: ResponseRequest) -> dict[str, Any]:
    match body.text and body.text.format:
        case JsonObjectFormat(schema=schema) | JsonSchemaFormat(schema=schema):
            return {"format": wire_schema(schema)}
        case _:
            return {}
