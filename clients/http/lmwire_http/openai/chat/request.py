"""The body of a chat completion request, and its options for the client library."""

import re
from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

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
from ...limits import JsonObject, Messages, ShortList, Tools
from ...settings import MAX_IMAGE_GROUP
from .. import messages
from ..messages import Message
from ..request_fields import (
    Count,
    GenerationParams,
    JsonSchemaFormat,
    ResponseFormat,
    generation_options,
    reject_fields,
    wire_format,
)
from ..request_fields import client_field as renamed_option
from ..tools import Function, FunctionChoice, Tool, ToolChoice, function_options, wire_choice, wire_tools


class ReasoningConfig(Struct, kw_only=True, forbid_unknown_fields=True):
    """Options of reasoning, as OpenRouter and tabbyAPI have them."""

    effort: ReasoningEffort | None = None
    """The same as `reasoning_effort`."""
    enabled: bool | None = None
    """Turn reasoning on or off."""
    max_tokens: int | None = None
    """The same as `reasoning_budget`."""
    exclude: Literal[False] | None = None
    """Must be false: the answer has the reasoning, in a field of its own."""
    summary: Literal["auto", "concise", "detailed"] | None = None
    """Ignored: reasoning is returned in full."""


class ChatRequest(GenerationParams, kw_only=True, forbid_unknown_fields=True):
    """A conversation to answer. Null fields count as absent.

    The fields from `chat_template` on are lmwire's own and have the meaning of PROTOCOL.md.
    """

    messages: Annotated[Messages[Message], Meta(min_length=1)]
    tools: Tools[Tool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    max_completion_tokens: Count | None = None
    max_tokens: Count | None = None
    """The older name of `max_completion_tokens`."""
    logprobs: bool | None = None
    """True if absent and `top_logprobs` is above 0."""
    top_logprobs: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    modalities: ShortList[str] | None = None
    """Must be text: no other modality is supported."""
    verbosity: Literal["low", "medium", "high"] | None = None
    """Ignored: models have no switch for it."""

    metadata: JsonObject | None = None
    """Ignored, as are the next six fields."""
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: JsonObject | None = None

    functions: Annotated[Tools[Function], Meta(min_length=1)] | None = None
    """Tools in the older format. The answer has at most one call, as `function_call`."""
    function_call: FunctionChoice | None = None
    """The tool choice in the older format."""

    audio: Any = None
    """Not supported, as are the next three fields. The error names an alternative."""
    prediction: Any = None
    web_search_options: Any = None
    moderation: Any = None

    chat_template: str | None = None
    template_args: JsonObject | None = None
    add_generation_prompt: bool | None = None
    """True if absent, or false with `continue_final_message`."""
    continue_final_message: bool | None = None
    prefix: str | None = None
    reasoning_budget: int | None = None
    """-1 is none."""
    reasoning: ReasoningConfig | None = None
    enable_thinking: bool | None = None
    """Turn reasoning on or off, as in vLLM and tabbyAPI. An effort may stand beside true."""
    chunk: Annotated[int, Meta(ge=1, le=MAX_IMAGE_GROUP)] | None = None
    """Maximum number of images in a prompt. More images are worked through in groups of this size."""
    return_progress: bool | None = None
    """Report the progress of the prompt in chunks of a stream, as llama.cpp does."""
    timings_per_token: bool | None = None
    """Report the times so far in each chunk of a stream with a part of the answer, as llama.cpp does."""
    verbose: bool | None = None
    """Show the text of the prompt in the answer, as llama.cpp does."""
    strict_media: bool | None = None
    """Reject images and sounds that the model does not take. If absent, only those after the last answer."""


_UNSUPPORTED: Final = {
    "audio": "answers are text; leave it out",
    "prediction": "predicted outputs are not supported; leave it out, or load the model with a draft model",
    "web_search_options": "web search is not supported; give the model a tool that searches",
    "moderation": "moderation is not supported; leave it out",
}
_CONVERTED: Final = (
    "temperature",
    "seed",
    "stop",
    "logit_bias",
    *REPETITION_FIELDS,
    "format",
    "tools",
    "tool_choice",
    "strict_media",
    *("reasoning", "reasoning_effort", "reasoning_budget"),
)
_OPTIONS: Final = shared_fields(ChatRequest, ChatOptions, converted=_CONVERTED)
_TOOL_FIELD: Final = re.compile(r"^tools\[(\d+)\]\.function\b")
_FORMAT_FIELD: Final = re.compile(r"^format(\.schema)?\b")


def chat_options(body: ChatRequest) -> ChatOptions:
    """Return all options except the messages.

    Raises:
        ApiError: A field is not supported, or fields contradict each other.
    """
    _check(body)
    options: Any = {**generation_options(body), **given_fields(body, *_OPTIONS)}
    options["strict_media"] = body.strict_media is True
    if wants_logprobs(body):
        options["logprobs"] = True
    if body.max_completion_tokens is not None:
        options["max_tokens"] = body.max_completion_tokens
    if body.continue_final_message and body.add_generation_prompt is None:
        options["add_generation_prompt"] = False
    if body.tools:
        options["tools"] = wire_tools(body.tools)
    if body.tool_choice is not None:
        options["tool_choice"] = wire_choice(body.tool_choice)
    if body.functions is not None:
        options.update(function_options(body.functions, body.function_call))
    if body.response_format is not None and (wanted := wire_format(body.response_format)):
        options["format"] = wanted
    options.update(_reasoning_options(body))
    return options


def _reasoning_options(body: ChatRequest) -> dict[str, Any]:
    """Return the options of reasoning, which the request may have by several names.

    Raises:
        ApiError: The names contradict each other.
    """
    config = body.reasoning or ReasoningConfig()
    for name, value, other in (
        ("effort", config.effort, "reasoning_effort"),
        ("max_tokens", config.max_tokens, "reasoning_budget"),
    ):
        if value is not None and getattr(body, other) not in (None, value):
            field = f"reasoning.{name}"
            raise invalid_field(f"{field}: says the same as `{other}`; give one of them", field)
    effort = body.reasoning_effort or config.effort
    for field, is_on in (("enable_thinking", body.enable_thinking), ("reasoning.enabled", config.enabled)):
        if is_on is None:
            continue
        effort = effort or ("default" if is_on else "none")
        if is_on is (effort == "none"):
            problem = f"{field}: is {str(is_on).lower()}, and the effort of reasoning is {effort}; give one of them"
            raise invalid_field(problem, field)
    budget = config.max_tokens if body.reasoning_budget is None else body.reasoning_budget
    return {**(effort_options(effort) if effort else {}), **budget_options(budget)}


def wants_logprobs(body: ChatRequest) -> bool:
    """Return whether the answer has log-probabilities: `top_logprobs` asks for them if `logprobs` says nothing."""
    return bool(body.top_logprobs) if body.logprobs is None else body.logprobs


def is_for_llama_cpp(body: ChatRequest) -> bool:
    """Return whether a client of llama.cpp's server sent the request: it asks for what that server alone reports."""
    return bool(body.timings_per_token or body.return_progress or body.verbose)


def image_group_size(body: ChatRequest, default: int | None) -> int | None:
    """Return the maximum number of images in a prompt; None if there is none.

    Args:
        body: The request's body.
        default: The server's maximum. It does not hold for requests whose answer cannot come in parts.

    Raises:
        ApiError: The request asks for groups of images, and its answer cannot come in parts.
    """
    for name in ("tools", "functions", "n", "response_format", "format", "grammar", "prefix", "verbose"):
        value = getattr(body, name)
        if value is True or (value and value != 1):  # one choice comes in parts
            if body.chunk is not None:
                raise invalid_field(f"chunk: the answer comes in parts, which {name} does not allow", "chunk")
            return None
    return default if body.chunk is None else body.chunk


def client_field(body: ChatRequest, field: str) -> str:
    """Return the client's name of a worker's field.

    Args:
        body: The request's body.
        field: The path of the worker's field.
    """
    if field.startswith("messages["):
        return messages.client_field(body.messages, field)
    if body.format is None and not body.grammar and _FORMAT_FIELD.match(field):
        return _FORMAT_FIELD.sub(partial(_schema_path, body), field)
    if _TOOL_FIELD.match(field):
        return _TOOL_FIELD.sub(partial(_tool_path, body), field)
    match field:
        case "max_tokens" if body.max_completion_tokens is not None:
            return "max_completion_tokens"
        case "reasoning_budget" if body.reasoning_budget is None:
            return "reasoning.max_tokens"
        case "reasoning" | "reasoning_effort":
            names = ("reasoning_effort", "reasoning", "enable_thinking")
            return next((name for name in names if getattr(body, name) is not None), names[0])
        case "tool_choice.name" if body.function_call is not None:
            return "function_call.name"
        case "tool_choice" if body.function_call is not None:
            return "function_call"
        case "tool_choice.name":
            return "tool_choice.function.name"
        case _:
            return renamed_option(body, field)


def _schema_path(body: ChatRequest, found: re.Match[str]) -> str:
    if not found[1]:
        return "response_format"
    nested = isinstance(body.response_format, JsonSchemaFormat)
    return "response_format.json_schema.schema" if nested else "response_format.schema"


def _tool_path(body: ChatRequest, found: re.Match[str]) -> str:
    """Return the path of a tool's function, which may be the tool itself or one of `functions`."""
    place = int(found[1])
    if body.functions is not None:
        return f"functions[{place}]"
    bare = body.tools is not None and place < len(body.tools) and body.tools[place].function is None
    return f"tools[{place}]" if bare else found[0]


def _check(body: ChatRequest) -> None:
    reject_fields(body, _UNSUPPORTED)
    for name, other in (
        ("max_tokens", "max_completion_tokens"),
        ("format", "response_format"),
        ("functions", "tools"),
        ("function_call", "tool_choice"),
    ):
        values = getattr(body, name), getattr(body, other)
        if None not in values and values[0] != values[1]:
            raise invalid_field(f"{name}: says the same as `{other}`; give one of them", name)
    if body.function_call is not None and body.functions is None:
        raise invalid_field("function_call: is for `functions`; send those too, or leave it out", "function_call")
    if body.modalities and body.modalities != ["text"]:
        raise invalid_field('modalities: answers are text; send ["text"], or leave it out', "modalities")
