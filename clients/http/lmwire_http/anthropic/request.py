"""The bodies of requests to /v1/messages and /v1/messages/count_tokens, with their messages and content blocks.

`cache_control` is accepted and ignored: prompts are always cached.
"""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from ..inference.options import LogitBias
from ..limits import BannedStrings, DryBreakers, JsonObject, Messages, Parts, ShortList, StopStrings, Tools


class StrictStruct(Struct, forbid_unknown_fields=True, kw_only=True):
    """A part of a request. Unknown fields are errors, and docstrings name each field that is ignored."""


class Block(StrictStruct, tag_field="type"):
    """A block of a message's content."""

    cache_control: Any = None


class Text(Block, tag="text", kw_only=True):
    """Text. Citations by another service are ignored."""

    text: str
    citations: Any = None


class SystemText(StrictStruct):
    """Text where no other block is allowed. Its type is required."""

    type: Literal["text"]
    text: str
    cache_control: Any = None
    citations: Any = None


class Base64Source(StrictStruct, tag_field="type", tag="base64"):
    """An image in base64. Its content shows its format."""

    data: str
    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]


class UrlSource(StrictStruct, tag_field="type", tag="url"):
    """The location of an image: a URL that the worker may fetch, or a file that it may read."""

    url: str


class Transformations(StrictStruct):
    """Treatment of an image that is larger than the model sees: it is scaled down."""

    oversized_image: Literal["downsize"] | None = None


class Image(Block, tag="image", kw_only=True):
    """An image."""

    source: Base64Source | UrlSource
    transformations: Transformations | None = None


class PlainSource(StrictStruct, tag_field="type", tag="text"):
    """The text of a document."""

    data: str
    media_type: Literal["text/plain"]


class ContentSource(StrictStruct, tag_field="type", tag="content"):
    """A document in blocks."""

    content: str | Parts[Text | Image]


class Citations(StrictStruct):
    """Citations in the answer. They must be off."""

    enabled: Literal[False] | None = None


class Document(Block, tag="document", kw_only=True):
    """A document. The model reads its title, context and text."""

    source: PlainSource | ContentSource
    title: str | None = None
    context: str | None = None
    citations: Citations | None = None


class SearchResult(Block, tag="search_result", kw_only=True):
    """A search result. The model reads its title, source and text."""

    title: str
    source: str
    content: Parts[SystemText]
    citations: Citations | None = None


class Thinking(Block, tag="thinking", kw_only=True):
    """Reasoning of an earlier turn. The signature is ignored: the client may change the text."""

    thinking: str
    signature: str | None = None


class RedactedThinking(Block, tag="redacted_thinking", kw_only=True):
    """Encrypted reasoning by another service. It is dropped."""

    data: str


class ToolUse(Block, tag="tool_use", kw_only=True):
    """A tool call that the model made."""

    id: str
    name: str
    input: JsonObject
    caller: Any = None
    toolset_name: None = None


class Tool(StrictStruct):
    """A function of the client that the model may call. `name` and `input_schema` are required.

    Tools of other types are left out, since only Anthropic's servers run them. `eager_input_streaming` and
    `cache_control` are ignored: a stream sends a call when it is complete.
    """

    name: str = ""
    input_schema: JsonObject | None = None
    type: str | None = None
    description: str | None = None
    strict: bool | None = None
    input_examples: ShortList[JsonObject] | None = None
    allowed_callers: ShortList[Literal["direct"]] | None = None
    defer_loading: bool | None = None
    """The prompt has the tool only after a `tool_reference` has named it."""
    eager_input_streaming: bool | None = None
    cache_control: Any = None


class ToolReference(Block, tag="tool_reference", kw_only=True):
    """A deferred tool that a search has found. From here on the model may call it."""

    tool_name: str


class NamedTool(StrictStruct, tag_field="type", tag="tool_reference"):
    """A tool of the request, by its name."""

    name: str


class ToolDefinition(StrictStruct, tag_field="type", tag="tool_definition"):
    """A tool that the request has nowhere else."""

    definition: Tool


class ToolAddition(Block, tag="tool_addition", kw_only=True):
    """A tool that the model may call from here on."""

    tool: NamedTool | ToolDefinition


class ToolRemoval(Block, tag="tool_removal", kw_only=True):
    """A tool that the model may not call any more."""

    tool: NamedTool


class ServerToolUse(Block, tag="server_tool_use", kw_only=True):
    """A call of a tool on Anthropic's servers. The model reads it as text, as it does the results below."""

    id: str | None = None
    name: str
    input: Any = None
    caller: Any = None


class McpToolUse(Block, tag="mcp_tool_use", kw_only=True):
    """A call of an MCP server's tool by Anthropic's servers."""

    id: str | None = None
    name: str
    server_name: str | None = None
    input: Any = None


class _ServerToolResult(Block, kw_only=True):
    """The result of a tool on Anthropic's servers."""

    tool_use_id: str | None = None
    content: Any = None
    caller: Any = None
    is_error: bool | None = None


class WebSearchToolResult(_ServerToolResult, tag="web_search_tool_result"):
    """The results of a search."""


class WebFetchToolResult(_ServerToolResult, tag="web_fetch_tool_result"):
    """A page."""


class CodeExecutionToolResult(_ServerToolResult, tag="code_execution_tool_result"):
    """The output of code."""


class BashToolResult(_ServerToolResult, tag="bash_code_execution_tool_result"):
    """The output of a command."""


class TextEditorToolResult(_ServerToolResult, tag="text_editor_code_execution_tool_result"):
    """The result of an edit."""


class McpToolResult(_ServerToolResult, tag="mcp_tool_result"):
    """The result of an MCP server's tool."""


class ToolSearchToolResult(_ServerToolResult, tag="tool_search_tool_result"):
    """The tools that Anthropic's own search has found."""


class ContainerUpload(Block, tag="container_upload", kw_only=True):
    """A file for code that runs on Anthropic's servers. It is dropped."""

    file_id: str


class Compaction(Block, tag="compaction", kw_only=True):
    """Anthropic's summary of the conversation before it. The model reads it as text, beside the conversation."""

    content: str | None = None
    encrypted_content: str | None = None


class ToolResult(Block, tag="tool_result", kw_only=True):
    """The result of a tool call."""

    tool_use_id: str
    content: "str | Parts[Text | Image | Document | SearchResult | ToolReference] | None" = None
    is_error: bool | None = None
    toolset_name: None = None


ContentInput: TypeAlias = Text | Image | Document | SearchResult | ToolReference | ContainerUpload
"""Blocks with input for the model."""


ServerToolResult: TypeAlias = (
    WebSearchToolResult
    | WebFetchToolResult
    | CodeExecutionToolResult
    | BashToolResult
    | TextEditorToolResult
    | McpToolResult
    | ToolSearchToolResult
)
ServerBlock: TypeAlias = ServerToolUse | McpToolUse | ServerToolResult | Compaction
"""Blocks of an answer by Anthropic's servers that this server never writes."""


class UserMessage(StrictStruct, tag_field="role", tag="user"):
    """A message of the user, with the results of tool calls."""

    content: (
        str
        | Annotated[Parts[Text | Image | Document | SearchResult | ToolResult | ContainerUpload], Meta(min_length=1)]
    )


class AssistantMessage(StrictStruct, tag_field="role", tag="assistant"):
    """A message of the model. If it is the last message, the answer continues it."""

    content: str | Parts[Text | Thinking | RedactedThinking | ToolUse | ServerBlock]


class SystemMessage(StrictStruct, tag_field="role", tag="system"):
    """An instruction within the conversation."""

    content: str | Parts[Text | ToolAddition | ToolRemoval]


Message: TypeAlias = UserMessage | AssistantMessage | SystemMessage


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
    """The format of the answer, and how much the model reasons if it does."""

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
    dry_multiplier: float | None = None
    dry_base: float | None = None
    dry_allowed_length: int | None = None
    dry_range: int | None = None
    dry_sequence_breakers: str | DryBreakers | None = None
    banned_strings: str | BannedStrings | None = None
    logit_bias: LogitBias | None = None
    seed: int | None = None
    include_stop: bool | None = None
    truncate: Literal["none", "left", "middle"] | None = None
    cache: Literal["on", "off", "pin"] | None = None
    timeout_ms: int | None = None
    strict_media: bool | None = None
    """Reject images and sounds that the model does not take. If absent, only those after the last answer."""
