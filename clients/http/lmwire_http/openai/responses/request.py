"""The body of a response request, and its options for the client library."""

import re
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from lmwire import ChatOptions

from ...errors import invalid_field
from ...inference.options import (
    REPETITION_FIELDS,
    ReasoningEffort,
    budget_options,
    effort_options,
    given_fields,
    shared_fields,
)
from ...limits import JsonObject, Messages, Metadata, ShortList, Tools
from ..request_fields import (
    Count,
    GenerationParams,
    JsonObjectFormat,
    TextFormat,
    generation_options,
    reject_fields,
    wire_schema,
)
from ..request_fields import client_field as renamed_option
from .tools import ToolSet


class JsonSchemaFormat(Struct, tag_field="type", tag="json_schema", kw_only=True, forbid_unknown_fields=True):
    """JSON that follows a schema, token by token, whatever `strict` says."""

    schema: JsonObject
    name: str | None = None
    """Ignored, as is `description`: the model does not see them."""
    description: str | None = None
    strict: bool | None = None


class TextConfig(Struct, kw_only=True, forbid_unknown_fields=True):
    """The format of the text."""

    format: TextFormat | JsonObjectFormat | JsonSchemaFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    """Ignored: models have no switch for it."""


class ReasoningConfig(Struct, kw_only=True, forbid_unknown_fields=True):
    """Options of reasoning."""

    effort: ReasoningEffort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    """Ignored, as are the next two fields: reasoning is returned in full."""
    generate_summary: Literal["auto", "concise", "detailed"] | None = None
    context: Literal["auto", "current_turn", "all_turns"] | None = None


Includable: TypeAlias = Literal[
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "reasoning.encrypted_content",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
]
"""Additional output. All but the first are ignored: the response always contains the available data."""


class ResponseRequest(GenerationParams, kw_only=True, forbid_unknown_fields=True):
    """A conversation to answer. Null fields count as absent.

    The fields from `chat_template` on are lmwire's own and have the meaning of PROTOCOL.md.
    """

    input: str | Messages[JsonObject]
    """A text or items. An item without a type is a message."""
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: Tools[JsonObject] | None = None
    """Functions, custom tools, and namespaces of both. Others are left out: only OpenAI's own service has them."""
    tool_choice: str | JsonObject | None = None
    """`none`, `auto`, `required`, one of the tools, or the allowed ones."""
    parallel_tool_calls: bool | None = None
    text: TextConfig | None = None
    reasoning: ReasoningConfig | None = None
    max_output_tokens: Count | None = None
    top_logprobs: int | None = None
    include: ShortList[Includable] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    store: bool | None = None
    """Store the response, so that requests can continue or get it. True if absent."""

    metadata: Metadata | None = None
    """Returned in the response. The next seven fields are ignored."""
    client_metadata: JsonObject | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: JsonObject | None = None
    max_tool_calls: int | None = None
    """Applies to tools that a server runs. There are none here."""
    background: bool | None = None
    """Must not be true: responses do not run in the background."""

    conversation: Any = None
    """Not supported, as are the next three fields. The error names an alternative."""
    prompt: Any = None
    context_management: Any = None
    moderation: Any = None

    chat_template: str | None = None
    template_args: JsonObject | None = None
    reasoning_budget: int | None = None
    strict_media: bool | None = None
    """Reject images and sounds that the model does not take. If absent, only those after the last answer."""


_LOGPROBS: Final = "message.output_text.logprobs"

_UNSUPPORTED: Final = {
    "conversation": "conversations are not supported; continue a response with `previous_response_id`",
    "prompt": "stored prompts are not supported; send their text as `instructions` or `input`",
    "context_management": "edits of a conversation are not supported; send `truncation`, or a shorter conversation",
    "moderation": "moderation is not supported; leave it out",
}
_CONVERTED: Final = (
    *("temperature", "seed", "stop", "logit_bias", "format", "tools", "tool_choice", "strict_media"),
    *("top_logprobs", "reasoning", "reasoning_budget", *REPETITION_FIELDS),
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
    options.update(budget_options(body.reasoning_budget))
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
        case "reasoning" | "reasoning_effort":
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
