"""Requests that generate text, and their conversion for the client library."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from lmwire import MessageDict, ToolDict
from lmwire_protocol import JsonObjectFormat, JsonSchemaFormat

from ..errors import invalid_field
from ..http.keep_alive import KeepAlive
from ..inference.call_ids import OPENAI_PREFIX, CallIds, restore_call_ids
from ..inference.options import effort_options, given_fields
from ..limits import Calls, JsonObject, Messages, Parts, StopStrings, TokenList, Tools

_DEFAULT_TAG: Final = ":latest"
Think: TypeAlias = bool | Literal["low", "medium", "high", "max"]
"""Reasoning on or off, or its effort."""
AnswerFormat: TypeAlias = JsonObject | Literal["", "json"]
"""A JSON Schema, or `json` for any JSON object."""
_SEED_COUNT: Final = 2**53
_SAME_NAME: Final = ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty")
_SCHEMA: Final = "format.schema"
_RENAMED: Final = {
    "max_tokens": "options.num_predict",
    "repetition_penalty": "options.repeat_penalty",
    "penalty_window": "options.repeat_last_n",
    "reasoning": "think",
    "reasoning_effort": "think",
    **{name: f"options.{name}" for name in (*_SAME_NAME, "top_k", "seed", "stop")},
}
_PART: Final = re.compile(r"(messages\[(\d+)\])\.content\[(\d+)\].*")
_REASONING: Final = re.compile(r"(messages\[\d+\])\.reasoning")
_CALL: Final = re.compile(r"(messages\[\d+\]\.tool_calls\[\d+\])\.(name|arguments.*)")


def without_tag(name: str) -> str:
    """Return the name on this server. Ollama's clients may add the tag `latest`, which stands for no tag."""
    return name.removesuffix(_DEFAULT_TAG)


class OllamaOptions(Struct, kw_only=True, forbid_unknown_fields=True):
    """Options of a generation. Those of Ollama's runner, such as `num_ctx`, are unknown here and ignored."""

    num_predict: Annotated[int, Meta(ge=-2)] | None = None
    """Maximum number of tokens. A negative number is the rest of the context, as without it."""
    temperature: float | None = None
    top_k: int | None = None
    """0 or less is off."""
    top_p: float | None = None
    min_p: float | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    """A negative number is a random one."""
    stop: str | StopStrings | None = None
    repeat_penalty: float | None = None
    repeat_last_n: Annotated[int, Meta(ge=-1)] | None = None
    """Number of newest tokens that the penalties look at; 0 turns them off, and -1 stands for all."""
    presence_penalty: float | None = None
    frequency_penalty: float | None = None


class AnswerRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Fields of requests that generate text. Null fields count as absent."""

    model: str = ""
    """May be absent if exactly one model is served."""
    stream: bool | None = None
    """True if absent."""
    format: AnswerFormat | None = None
    options: OllamaOptions | None = None
    think: Think | None = None
    """If absent, the model decides."""
    keep_alive: KeepAlive | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    truncate: bool | None = None
    """False refuses a prompt that is longer than the context. Otherwise its oldest turns or its beginning go."""
    strict_media: bool | None = None
    """lmwire's own field: refuse images that the model does not take. If absent, only those after the last answer."""


class CallFunction(Struct, kw_only=True, forbid_unknown_fields=True):
    """The function of a call."""

    name: str
    arguments: JsonObject = {}
    index: int | None = None
    """Ignored: the calls are in order."""


class ToolCall(Struct, kw_only=True, forbid_unknown_fields=True):
    """A call that the model made earlier in the conversation."""

    function: CallFunction
    id: str = ""
    type: Literal["function"] = "function"


class Message(Struct, kw_only=True, forbid_unknown_fields=True):
    """A message of the conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    images: Parts[str] | None = None
    """Images in base64, which the model sees before the content."""
    thinking: str | None = None
    """The reasoning of an earlier answer."""
    tool_calls: Calls[ToolCall] | None = None
    tool_name: str | None = None
    """The tool whose result the message is."""
    tool_call_id: str | None = None
    """The call whose result the message is. If absent, it is the last turn's first call of that tool without one."""


class ToolFunction(Struct, kw_only=True, forbid_unknown_fields=True):
    """The function of a tool."""

    name: str
    description: str | None = None
    parameters: JsonObject | None = None
    """A JSON Schema."""


class Tool(Struct, kw_only=True, forbid_unknown_fields=True):
    """A function that the model may call."""

    function: ToolFunction
    type: Literal["function"] = "function"


class OllamaChatRequest(AnswerRequest, kw_only=True, forbid_unknown_fields=True):
    """The body of /api/chat."""

    messages: Messages[Message] | None = None
    """Without messages, the model is loaded, or unloaded if `keep_alive` is 0."""
    tools: Tools[Tool] | None = None


class GenerateRequest(AnswerRequest, kw_only=True, forbid_unknown_fields=True):
    """The body of /api/generate."""

    prompt: str | None = None
    """Without a prompt, the model is loaded, or unloaded if `keep_alive` is 0."""
    system: str | None = None
    images: Parts[str] | None = None
    """Images in base64, which the model sees before the prompt."""
    raw: bool | None = None
    """Continue the prompt as it is, without the chat template."""
    suffix: str | None = None
    """Text after a gap, which the answer fills; `prompt` is the text before it. Needs a model that fills gaps."""
    template: str | None = None
    """Not supported, unless empty."""
    context: TokenList[int] | None = None
    """The conversation so far, which the last line of the answer before had. Not with `raw` or `suffix`."""


def generation_options(body: AnswerRequest) -> dict[str, Any]:
    """Return the options of a generation, as `lmwire.GenerateOptions`.

    Raises:
        ApiError: Fields contradict each other.
    """
    options = _sampling_options(body.options or OllamaOptions())
    if body.format == "json":
        options["format"] = JsonObjectFormat()
    elif body.format:
        options["format"] = JsonSchemaFormat(schema=body.format)
    if body.top_logprobs and not body.logprobs:
        raise invalid_field("top_logprobs: needs `logprobs`: true", "top_logprobs")
    return options | given_fields(body, "logprobs", "top_logprobs")


def chat_options(body: AnswerRequest, tools: list[Tool] | None = None) -> dict[str, Any]:
    """Return the options of an answer to a conversation, as `lmwire.ChatOptions`.

    Args:
        body: The request's body.
        tools: Its tools.

    Raises:
        ApiError: Fields contradict each other.
    """
    options = {**generation_options(body), "strict_media": body.strict_media is True}
    if isinstance(body.think, bool):
        options["reasoning"] = "on" if body.think else "off"
    elif body.think is not None:
        options |= effort_options(body.think)
    if tools:
        options["tools"] = [_wire_tool(tool) for tool in tools]
    return options


def client_field(field: str) -> str:
    """Return the client's name of a worker's field that is not a part of the prompt."""
    if field.startswith(_SCHEMA):
        return "format" + field.removeprefix(_SCHEMA)
    head, bracket, rest = field.partition("[")
    return _RENAMED[head] + bracket + rest if head in _RENAMED else field


def _sampling_options(given: OllamaOptions) -> dict[str, Any]:
    options = given_fields(given, *_SAME_NAME)
    if given.num_predict is not None and given.num_predict >= 0:
        options["max_tokens"] = given.num_predict
    if given.top_k is not None:
        options["top_k"] = max(0, given.top_k)
    if given.seed is not None and given.seed >= 0:
        options["seed"] = given.seed % _SEED_COUNT
    if given.stop is not None:
        options["stop"] = [given.stop] if isinstance(given.stop, str) else given.stop
    return options | _penalty_options(given)


def _penalty_options(given: OllamaOptions) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if given.repeat_penalty is not None:
        options["repetition_penalty"] = given.repeat_penalty
    if given.repeat_last_n == 0:
        return {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
    if given.repeat_last_n is not None:
        options["penalty_window"] = max(0, given.repeat_last_n)
    return options


def _wire_tool(tool: Tool) -> ToolDict:
    fields: Any = given_fields(tool.function, "name", "description", "parameters")
    return {"type": "function", "function": fields}


def wire_messages(messages: Sequence[Message]) -> list[MessageDict]:
    """Return the messages as the client library takes them.

    Raises:
        ApiError: A tool's result belongs to no call.
    """
    ids = CallIds()
    wire = [_wire_message(message, f"messages[{place}]", ids) for place, message in enumerate(messages)]
    restore_call_ids(wire, OPENAI_PREFIX)
    return wire


def content_with_images(text: str, images: Sequence[str] | None) -> Any:
    """Return a message's content, with the images before the text, as in Ollama.

    Args:
        text: The text.
        images: The images in base64.
    """
    if not images:
        return text
    parts: list[Any] = [{"type": "image", "media": {"data": image}} for image in images]
    return [*parts, {"type": "text", "text": text}] if text else parts


def chat_field(messages: Sequence[Message], field: str) -> str:
    """Return the client's name of a worker's field.

    Args:
        messages: The request's messages.
        field: The path of the worker's field.
    """
    if found := _PART.fullmatch(field):
        images = messages[int(found[2])].images or ()
        return f"{found[1]}.images[{found[3]}]" if int(found[3]) < len(images) else f"{found[1]}.content"
    if found := _REASONING.fullmatch(field):
        return f"{found[1]}.thinking"
    if found := _CALL.fullmatch(field):
        return f"{found[1]}.function.{found[2]}"
    return client_field(field)


def _wire_message(message: Message, path: str, ids: CallIds) -> MessageDict:
    wire: MessageDict = {
        "role": message.role,
        "content": content_with_images(message.content or "", message.images),
    }
    if message.role == "tool":
        call_id, name = message.tool_call_id or "", message.tool_name or ""
        wire["tool_call_id"] = ids.of_result(call_id, f"{path}.tool_call_id", name)
        if name:
            wire["name"] = name
    if message.thinking:
        wire["reasoning"] = message.thinking
    if message.tool_calls:
        ids.begin_turn()
        wire["tool_calls"] = [
            {
                "id": ids.of_call(call.id, call.function.name),
                "name": call.function.name,
                "arguments": call.function.arguments,
            }
            for call in message.tool_calls
        ]
    return wire
