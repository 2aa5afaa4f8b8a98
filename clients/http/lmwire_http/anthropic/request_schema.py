"""The bodies of requests to /v1/messages and /v1/messages/count_tokens."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ..inference.options import LogitBias
from ..limits import JsonObject, Messages, Parts, ShortList, StopStrings, Tools
from .content_blocks import Message, StrictStruct, SystemText, Tool


class _ToolChoice(StrictStruct, tag_field="type"):
    """Fields of all tool choices that allow calls."""

    disable_parallel_tool_use: bool | None = None


class ChooseAuto(_ToolChoice, tag="auto"):
    """The model may call tools."""


class ChooseAny(_ToolChoice, tag="any"):
    """The model must call at least one tool."""


class ChooseTool(_ToolChoice, tag="tool", kw_only=True):
    """The model must call this tool."""

    name: str


class ChooseNone(StrictStruct, tag_field="type", tag="none"):
    """The model does not see the tools."""


class ThinkingEnabled(StrictStruct, tag_field="type", tag="enabled"):
    """Reasoning within a budget of tokens. `display` chooses whether the answer shows it."""

    budget_tokens: Annotated[int, Meta(ge=0)]
    display: Literal["summarized", "omitted"] | None = None


class ThinkingAdaptive(StrictStruct, tag_field="type", tag="adaptive"):
    """Reasoning as the model decides, the default."""

    display: Literal["summarized", "omitted"] | None = None


class ThinkingDisabled(StrictStruct, tag_field="type", tag="disabled"):
    """No reasoning."""


class JsonFormat(StrictStruct):
    """JSON that follows a schema."""

    type: Literal["json_schema"]
    schema: JsonObject


class OutputConfig(StrictStruct):
    """The format of the answer. `effort` is ignored: models have no such switch."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: JsonFormat | None = None


class ContextEdit(Struct, kw_only=True):
    """An edit of the conversation by Anthropic's servers, with its own further fields.

    `clear_thinking_20251015` with `keep` all changes nothing. Other edits are left out.
    """

    type: str
    keep: Any = None


class ContextManagement(StrictStruct):
    """Removal of content from the conversation. The conversation stays whole here."""

    edits: ShortList[ContextEdit] = []


class CountTokensRequest(StrictStruct, kw_only=True):
    """The body of /v1/messages/count_tokens: the prompt.

    `cache_control`, `speed`, `user_profile_id` and `workspace_id` are ignored. The last two fields are lmwire's own and
    have the meaning of PROTOCOL.md.
    """

    model: str = ""
    """May be absent, or `default`, if exactly one model is served."""
    messages: Annotated[Messages[Message], Meta(min_length=1)]
    system: str | Parts[SystemText] | None = None
    tools: Tools[Tool] | None = None
    tool_choice: ChooseAuto | ChooseAny | ChooseTool | ChooseNone | None = None
    thinking: ThinkingEnabled | ThinkingAdaptive | ThinkingDisabled | None = None
    output_config: OutputConfig | None = None
    context_management: ContextManagement | None = None
    cache_control: Any = None
    speed: Literal["standard", "fast"] | None = None
    user_profile_id: str | None = None
    workspace_id: str | None = None

    chat_template: str | None = None
    template_args: JsonObject | None = None


class MessagesRequest(CountTokensRequest, kw_only=True):
    """The body of /v1/messages.

    `metadata`, `service_tier`, `inference_geo` and `diagnostics` are ignored. The fields from `min_tokens` on are
    lmwire's own and have the meaning of PROTOCOL.md.
    """

    max_tokens: Annotated[int, Meta(ge=0)]
    stream: bool | None = None
    stop_sequences: StopStrings | None = None
    temperature: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_p: float | None = None
    top_k: int | None = None
    metadata: Any = None
    service_tier: Literal["auto", "standard_only"] | None = None
    inference_geo: str | None = None
    diagnostics: Any = None
    container: None = None
    thread: Any = None
    """Not supported. The error makes clients send the whole conversation."""

    min_tokens: int | None = None
    ignore_eos: bool | None = None
    min_p: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    penalty_window: int | None = None
    logit_bias: LogitBias | None = None
    seed: int | None = None
    include_stop: bool | None = None
    truncate: Literal["none", "left", "middle"] | None = None
    cache: Literal["on", "off", "pin"] | None = None
    timeout_ms: int | None = None
    strict_media: bool | None = None
    """Reject images and sounds that the model does not take. If absent, only those after the last answer."""
