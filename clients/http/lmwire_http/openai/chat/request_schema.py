"""The body of a chat completion request."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from ...inference.options import ReasoningEffort
from ...limits import JsonObject, Messages, ShortList, Tools
from ...settings import MAX_IMAGE_GROUP
from ..generation_params import Count, GenerationParams
from ..messages import Message
from ..response_format import ResponseFormat
from ..tools import Function, FunctionChoice, Tool, ToolChoice


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
    chunk: Annotated[int, Meta(ge=1, le=MAX_IMAGE_GROUP)] | None = None
    """Maximum number of images in a prompt. More images are worked through in groups of this size."""
    return_progress: bool | None = None
    """Report the progress of the prompt in chunks of a stream, as llama.cpp does."""
    strict_media: bool | None = None
    """Reject images and sounds that the model does not take. If absent, only those after the last answer."""
