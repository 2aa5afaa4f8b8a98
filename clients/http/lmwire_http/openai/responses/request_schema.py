"""The body of a response request."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ...inference.options import ReasoningEffort
from ...limits import JsonObject, Messages, Metadata, ShortList, Tools
from ..generation_params import Count, GenerationParams
from ..response_format import JsonObjectFormat, TextFormat


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
