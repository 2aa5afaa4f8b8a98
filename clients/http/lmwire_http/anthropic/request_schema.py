"""The bodies of /v1/messages and of /v1/messages/count_tokens."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from .content_blocks import Message, StrictStruct, SystemText


class Tool(StrictStruct):
    """A function of the client's that the model may call. Those that Anthropic's own servers run are refused.

    `eager_input_streaming` is taken and not used: a stream shows a call when it has ended. `cache_control` is, too.
    """

    name: str
    input_schema: dict[str, Any]
    type: Literal["custom"] | None = None
    description: str | None = None
    strict: bool | None = None
    input_examples: list[dict[str, Any]] | None = None
    allowed_callers: list[Literal["direct"]] | None = None
    defer_loading: Literal[False] | None = None
    eager_input_streaming: bool | None = None
    cache_control: Any = None


class _ToolChoice(StrictStruct, tag_field="type"):
    """Whether the model calls."""

    disable_parallel_tool_use: bool | None = None


class ChooseAuto(_ToolChoice, tag="auto"):
    """It calls or answers."""


class ChooseAny(_ToolChoice, tag="any"):
    """It calls a tool at least."""


class ChooseTool(_ToolChoice, tag="tool", kw_only=True):
    """It calls this tool."""

    name: str


class ChooseNone(StrictStruct, tag_field="type", tag="none"):
    """It is not shown the tools."""


class ThinkingEnabled(StrictStruct, tag_field="type", tag="enabled"):
    """The model thinks first, so many tokens at most. `display` is whether the answer shows it."""

    budget_tokens: Annotated[int, Meta(ge=0)]
    display: Literal["summarized", "omitted"] | None = None


class ThinkingAdaptive(StrictStruct, tag_field="type", tag="adaptive"):
    """The model thinks if it likes, as it does where `thinking` is left out."""

    display: Literal["summarized", "omitted"] | None = None


class ThinkingDisabled(StrictStruct, tag_field="type", tag="disabled"):
    """The model answers at once."""


class JsonFormat(StrictStruct):
    """The answer is JSON that a schema holds for."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(StrictStruct):
    """What the answer is like. `effort` is taken and not used: no model here has such a scale."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: JsonFormat | None = None


class KeepThinking(StrictStruct):
    """Thoughts of earlier turns are left where they are."""

    type: Literal["clear_thinking_20251015"]
    keep: Literal["all"]


class ContextManagement(StrictStruct):
    """What is to be taken out of the conversation: nothing can be."""

    edits: list[KeepThinking] = []


class CountTokensRequest(StrictStruct):
    """What the model reads: the body of count_tokens.

    `cache_control`, `speed`, `user_profile_id` and `workspace_id` are taken and not used. The last two fields are
    lmwire's own, and mean what PROTOCOL.md says.
    """

    model: str
    messages: Annotated[list[Message], Meta(min_length=1)]
    system: str | list[SystemText] | None = None
    tools: list[Tool] | None = None
    tool_choice: ChooseAuto | ChooseAny | ChooseTool | ChooseNone | None = None
    thinking: ThinkingEnabled | ThinkingAdaptive | ThinkingDisabled | None = None
    output_config: OutputConfig | None = None
    context_management: ContextManagement | None = None
    cache_control: Any = None
    speed: Literal["standard", "fast"] | None = None
    user_profile_id: str | None = None
    workspace_id: str | None = None

    chat_template: str | None = None
    template_args: dict[str, Any] | None = None


class MessagesRequest(CountTokensRequest, kw_only=True):
    """The body of /v1/messages.

    `metadata`, `service_tier`, `inference_geo` and `diagnostics` are taken and not used. The fields from `min_tokens`
    on are lmwire's own, and mean what PROTOCOL.md says.
    """

    max_tokens: Annotated[int, Meta(ge=0)]
    stream: bool | None = None
    stop_sequences: list[str] | None = None
    temperature: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_p: float | None = None
    top_k: int | None = None
    metadata: Any = None
    service_tier: Literal["auto", "standard_only"] | None = None
    inference_geo: str | None = None
    diagnostics: Any = None
    container: None = None
    thread: Any = None
    """Refused, in the way that tells a client to send the whole conversation."""

    min_tokens: int | None = None
    ignore_eos: bool | None = None
    min_p: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    penalty_window: int | None = None
    logit_bias: dict[int, float] | None = None
    seed: int | None = None
    include_stop: bool | None = None
    truncate: Literal["none", "left", "middle"] | None = None
    cache: Literal["on", "off", "pin"] | None = None
    timeout_ms: int | None = None
    strict_media: bool | None = None
    """On unless it is set: an image that the model cannot see is refused."""
