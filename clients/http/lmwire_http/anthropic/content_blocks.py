"""What messages are made of. `cache_control` is taken and not used: the worker keeps what it computed of prompts."""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct


class StrictStruct(Struct, forbid_unknown_fields=True, kw_only=True):
    """What a client writes: nothing of it is passed over in silence but what a docstring names."""


class Block(StrictStruct, tag_field="type"):
    """A piece of a message's content."""

    cache_control: Any = None


class Text(Block, tag="text", kw_only=True):
    """Text. The citations that another service put into it are passed over."""

    text: str
    citations: Any = None


class SystemText(StrictStruct):
    """Text where there can be nothing else. Its type must be given all the same."""

    type: Literal["text"]
    text: str
    cache_control: Any = None
    citations: Any = None


class Base64Source(StrictStruct, tag_field="type", tag="base64"):
    """An image itself. What format it has, its content says."""

    data: str
    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]


class UrlSource(StrictStruct, tag_field="type", tag="url"):
    """Where an image is: an address, for a worker that may fetch it, or a file that it may read."""

    url: str


class Transformations(StrictStruct):
    """What happens to an image that is larger than the model sees: it is made smaller."""

    oversized_image: Literal["downsize"] | None = None


class Image(Block, tag="image", kw_only=True):
    """An image."""

    source: Base64Source | UrlSource
    transformations: Transformations | None = None


class PlainSource(StrictStruct, tag_field="type", tag="text"):
    """A document's text."""

    data: str
    media_type: Literal["text/plain"]


class ContentSource(StrictStruct, tag_field="type", tag="content"):
    """A document in pieces."""

    content: str | list[Text | Image]


class Citations(StrictStruct):
    """Whether the answer is to cite: it is not."""

    enabled: Literal[False] | None = None


class Document(Block, tag="document", kw_only=True):
    """A document, of which the model reads the title, the context and the text."""

    source: PlainSource | ContentSource
    title: str | None = None
    context: str | None = None
    citations: Citations | None = None


class SearchResult(Block, tag="search_result", kw_only=True):
    """What a search found, of which the model reads the title, the source and the text."""

    title: str
    source: str
    content: list[SystemText]
    citations: Citations | None = None


class Thinking(Block, tag="thinking", kw_only=True):
    """What the model thought before. The signature is passed over: thoughts are what the client says."""

    thinking: str
    signature: str | None = None


class RedactedThinking(Block, tag="redacted_thinking", kw_only=True):
    """What another service's model thought, and only that service can read: it is left out."""

    data: str


class ToolUse(Block, tag="tool_use", kw_only=True):
    """A call that the model made."""

    id: str
    name: str
    input: dict[str, Any]
    caller: Any = None
    toolset_name: None = None


class ToolResult(Block, tag="tool_result", kw_only=True):
    """What a call came to."""

    tool_use_id: str
    content: "str | list[Text | Image | Document | SearchResult] | None" = None
    is_error: bool | None = None
    toolset_name: None = None


ContentInput: TypeAlias = Text | Image | Document | SearchResult
"""What the model reads or sees."""


class UserMessage(StrictStruct, tag_field="role", tag="user"):
    """What is said to the model, and what its calls came to."""

    content: str | Annotated[list[Text | Image | Document | SearchResult | ToolResult], Meta(min_length=1)]


class AssistantMessage(StrictStruct, tag_field="role", tag="assistant"):
    """What the model said. The last message of all is how its answer begins."""

    content: str | list[Text | Thinking | RedactedThinking | ToolUse]


class SystemMessage(StrictStruct, tag_field="role", tag="system"):
    """An instruction amid the conversation."""

    content: str | list[SystemText]


Message: TypeAlias = UserMessage | AssistantMessage | SystemMessage
