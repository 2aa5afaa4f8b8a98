"""What a response is asked with."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ..generation_params import Count, GenerationParams
from ..reasoning_effort import ReasoningEffort
from ..response_format import JsonObjectFormat, TextFormat


class Tool(Struct, kw_only=True, forbid_unknown_fields=True):
    """A function that the model may call; tools of other types are refused."""

    type: Literal["function"]
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """A JSON Schema."""
    strict: bool | None = None
    """Hold the arguments to the schema, token by token."""
    defer_loading: Literal[False] | None = None
    allowed_callers: list[Literal["direct"]] | None = None
    output_schema: dict[str, Any] | None = None
    """Harmless: the client is not held to it."""


class ChooseFunction(Struct, tag_field="type", tag="function", kw_only=True, forbid_unknown_fields=True):
    """The one to call."""

    name: str


class AllowedTool(Struct, kw_only=True, forbid_unknown_fields=True):
    """One of `tools`."""

    type: Literal["function"]
    name: str


class ChooseAllowed(Struct, tag_field="type", tag="allowed_tools", kw_only=True, forbid_unknown_fields=True):
    """Those that the model is shown."""

    mode: Literal["auto", "required"]
    tools: list[AllowedTool]


ToolChoice: TypeAlias = Literal["none", "auto", "required"] | ChooseFunction | ChooseAllowed


class JsonSchemaFormat(Struct, tag_field="type", tag="json_schema", kw_only=True, forbid_unknown_fields=True):
    """JSON that a schema holds for, token by token, whether `strict` or not."""

    schema: dict[str, Any]
    name: str | None = None
    """Harmless, as `description` is: the model is not told of it."""
    description: str | None = None
    strict: bool | None = None


class TextConfig(Struct, kw_only=True, forbid_unknown_fields=True):
    """What the text is to be."""

    format: TextFormat | JsonObjectFormat | JsonSchemaFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    """Harmless: no model here has a switch for it."""


class ReasoningConfig(Struct, kw_only=True, forbid_unknown_fields=True):
    """How the model is to think."""

    effort: ReasoningEffort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    """Harmless, as the next two are: thoughts come whole."""
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
"""What a response is to have besides. All but the first are harmless: it has what there is of them."""


class ResponseRequest(GenerationParams, kw_only=True, forbid_unknown_fields=True):
    """A conversation to continue, and how. Null is absent.

    Those from `chat_template` on are lmwire's own, and mean what PROTOCOL.md says.
    """

    input: str | list[dict[str, Any]]
    """A text, or items; one without a type is a message."""
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    text: TextConfig | None = None
    reasoning: ReasoningConfig | None = None
    max_output_tokens: Count | None = None
    top_logprobs: int | None = None
    include: list[Includable] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    store: bool | None = None
    """Whether it can be continued, and asked for; it can."""

    metadata: dict[str, str] | None = None
    """Harmless, as the next six are: told in the response, or for those who run the API."""
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    max_tool_calls: int | None = None
    """Of tools that the server runs: there are none."""
    background: Literal[False] | None = None

    conversation: Any = None
    """Refused, as the next three are, with what to do instead."""
    prompt: Any = None
    context_management: Any = None
    moderation: Any = None

    chat_template: str | None = None
    template_args: dict[str, Any] | None = None
    reasoning_budget: int | None = None
    strict_media: bool | None = None
    """On unless it is set: an image that the model cannot see is refused."""
