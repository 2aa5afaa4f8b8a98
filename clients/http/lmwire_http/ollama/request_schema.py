"""Bodies of requests that generate text."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from ..http.keep_alive import KeepAlive
from ..limits import Calls, JsonObject, Messages, Parts, StopStrings, TokenList, Tools

Think: TypeAlias = bool | Literal["low", "medium", "high", "max"]
"""Reasoning on or off, or its effort."""
AnswerFormat: TypeAlias = JsonObject | Literal["", "json"]
"""A JSON Schema, or `json` for any JSON object."""


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
    """Not supported, unless empty."""
