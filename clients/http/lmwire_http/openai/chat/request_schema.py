"""What a chat completion is asked with."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from ..generation_params import Count, Generating
from ..messages import Message
from ..reasoning_effort import Effort
from ..response_format import ResponseFormat
from ..tools import Tool, ToolChoice


class ChatBody(Generating, kw_only=True, forbid_unknown_fields=True):
    """A conversation to answer, and how. Null is absent.

    Those from `chat_template` on are lmwire's own, and mean what PROTOCOL.md says.
    """

    messages: Annotated[list[Message], Meta(min_length=1)]
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    max_completion_tokens: Count | None = None
    max_tokens: Count | None = None
    """The older name of `max_completion_tokens`."""
    logprobs: bool | None = None
    top_logprobs: int | None = None
    reasoning_effort: Effort | None = None
    modalities: list[str] | None = None
    """Text, which is all there is."""
    verbosity: Literal["low", "medium", "high"] | None = None
    """Medium, which is how models answer."""

    metadata: dict[str, Any] | None = None
    """Harmless, as the next six are: they are for those who run the API."""
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: dict[str, Any] | None = None

    functions: Any = None
    """Refused, as the next five are, with what to do instead."""
    function_call: Any = None
    audio: Any = None
    prediction: Any = None
    web_search_options: Any = None
    moderation: Any = None

    chat_template: str | None = None
    template_args: dict[str, Any] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    """Another name of `template_args`."""
    add_generation_prompt: bool | None = None
    prefix: str | None = None
    reasoning_budget: int | None = None
    strict_media: bool | None = None
    """On unless it is set: an image that the model cannot see is refused."""
