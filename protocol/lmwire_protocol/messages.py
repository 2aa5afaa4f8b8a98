"""The parts of a conversation: messages, their parts, and the tools that a model may call."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from .limits import NAME_CHARACTERS

FREE_FORM: Final = frozenset({"arguments", "parameters", "schema", "template_args"})
"""Fields that hold any JSON object. It is passed on unchanged: a null within it stays a null."""


class TextPart(Struct, tag_field="type", tag="text", forbid_unknown_fields=True, frozen=True):
    """A text part of a message."""

    text: str
    """The text."""


class Media(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """An image or a sound. Exactly one of the fields is given."""

    data: str | None = None
    """Base64, or a data URI."""
    path: str | None = None
    """A file on the worker's machine."""
    url: str | None = None
    """An address on the network."""

    def __post_init__(self) -> None:
        if [self.data, self.path, self.url].count(None) != 2:
            raise ValueError("data: give exactly one of `data`, `path` and `url`")


class ImagePart(Struct, tag_field="type", tag="image", forbid_unknown_fields=True, frozen=True):
    """An image in a message."""

    media: Media
    """Source of the image."""


class AudioPart(Struct, tag_field="type", tag="audio", forbid_unknown_fields=True, frozen=True):
    """A sound in a message."""

    media: Media
    """Source of the sound."""


Part = TextPart | ImagePart | AudioPart


class CalledTool(Struct, forbid_unknown_fields=True, frozen=True):
    """A call that the model made earlier in the conversation."""

    id: Annotated[str, Meta(min_length=1)]
    """The `call_id` of the tool_call event. The tool's message refers to it."""
    name: Annotated[str, Meta(min_length=1)]
    """The function's name."""
    arguments: dict[str, Any] | str
    """A JSON object, or its text."""


class Message(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """One turn of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    """`developer` and `system` have the same meaning. `tool` holds a tool's result."""
    content: str | list[Part] | None = None
    """Text, or parts, whose texts are joined unchanged. An assistant's message with tool_calls may lack it."""
    reasoning: str | None = None
    """The assistant's reasoning before its answer, from the reasoning channel."""
    tool_calls: list[CalledTool] = []
    """The assistant's tool calls, in order."""
    tool_call_id: str | None = None
    """The id of the call that a tool's message answers; required there."""
    name: str | None = None
    """The function that a tool's message comes from. Absent: the call's function."""

    def __post_init__(self) -> None:
        if self.role != "assistant":
            for field in ("reasoning", "tool_calls"):
                if getattr(self, field):
                    raise ValueError(f"{field}: only an assistant's message has it")
        if self.role != "tool":
            for field in ("tool_call_id", "name"):
                if getattr(self, field) is not None:
                    raise ValueError(f"{field}: only a tool's message has it")
        elif not self.tool_call_id:
            raise ValueError("tool_call_id: is required in a tool's message; it is the id of the call it answers")
        if self.content is None and not self.tool_calls:
            raise ValueError("content: is required, except in an assistant's message with tool_calls")


class Function(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """The purpose and the parameters of a tool."""

    name: Annotated[str, Meta(min_length=1, max_length=NAME_CHARACTERS)]
    """The function's name, which a call refers to."""
    description: str = ""
    """The function's purpose, for the model."""
    parameters: dict[str, Any] = {}
    """A JSON Schema of the arguments object. Empty: no schema."""
    strict: bool = False
    """Enforce the schema even if the model may choose not to call."""


class Tool(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A function that the model may call, in OpenAI's shape."""

    type: Literal["function"] = "function"
    """The only kind."""
    function: Function
    """The function's description for the model."""


class NamedTool(Struct, forbid_unknown_fields=True, frozen=True):
    """The function to call."""

    name: str
    """The name of one of `tools`."""
