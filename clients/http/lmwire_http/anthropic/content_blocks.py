"""Messages and content blocks of requests. `cache_control` is accepted and ignored: prompts are always cached."""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct


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

    content: str | list[Text | Image]


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
    content: list[SystemText]
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
    input: dict[str, Any]
    caller: Any = None
    toolset_name: None = None


class ToolResult(Block, tag="tool_result", kw_only=True):
    """The result of a tool call."""

    tool_use_id: str
    content: "str | list[Text | Image | Document | SearchResult] | None" = None
    is_error: bool | None = None
    toolset_name: None = None


ContentInput: TypeAlias = Text | Image | Document | SearchResult
"""Blocks with input for the model."""


class UserMessage(StrictStruct, tag_field="role", tag="user"):
    """A message of the user, with the results of tool calls."""

    content: str | Annotated[list[Text | Image | Document | SearchResult | ToolResult], Meta(min_length=1)]


class AssistantMessage(StrictStruct, tag_field="role", tag="assistant"):
    """A message of the model. If it is the last message, the answer continues it."""

    content: str | list[Text | Thinking | RedactedThinking | ToolUse]


class SystemMessage(StrictStruct, tag_field="role", tag="system"):
    """An instruction within the conversation."""

    content: str | list[SystemText]


Message: TypeAlias = UserMessage | AssistantMessage | SystemMessage
