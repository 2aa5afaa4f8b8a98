"""The parts of prompts: messages, their parts, tools that a model may call, and files beside a gap."""

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from .limits import MAX_INT, MEMBERS, NAME_CHARACTERS, PARTS, PROMPT_TOKENS, TOOL_CALLS

JsonObject = Annotated[dict[str, Any], Meta(max_length=MEMBERS)]
FREE_FORM: Final = frozenset({"arguments", "parameters", "schema", "template_args"})
"""Fields that hold any JSON object. It is passed on unchanged: a null within it stays a null."""

_ABSENT: Final[Any] = None
"""Default of a field that is required unless another shape of the object stands in for it."""


def _is_absent(value: object) -> bool:
    return value is _ABSENT


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


class TokensPart(Struct, tag_field="type", tag="tokens", forbid_unknown_fields=True, frozen=True):
    """An input of `embed` as tokens, which the model receives as they are."""

    token_ids: Annotated[list[Annotated[int, Meta(ge=0, le=MAX_INT)]], Meta(min_length=1, max_length=PROMPT_TOKENS)]
    """Tokens of the model's vocabulary, with those that its tokenizer puts around a text."""


class ImageUrl(Struct, forbid_unknown_fields=True, frozen=True):
    """The source of an image, in OpenAI's shape."""

    url: str
    """A data URI, or an address on the network."""
    detail: Literal["auto"] = "auto"
    """The model decides about the resolution."""


class ImageUrlPart(Struct, tag_field="type", tag="image_url", forbid_unknown_fields=True, frozen=True):
    """An image in a message, in OpenAI's shape. A decoded message holds an ImagePart in its place."""

    image_url: ImageUrl | str
    """Source of the image, or its address alone."""

    def native(self) -> ImagePart:
        """Return the part in the native shape."""
        url = self.image_url if isinstance(self.image_url, str) else self.image_url.url
        return ImagePart(Media(data=url) if url[:5].lower() == "data:" else Media(url=url))


Part = TextPart | ImagePart | AudioPart
if TYPE_CHECKING:
    Content: TypeAlias = str | list[Part]
else:  # accepted, and replaced by the native parts
    Content = str | Annotated[list[Part | ImageUrlPart], Meta(max_length=PARTS)]


class CalledFunction(Struct, forbid_unknown_fields=True, frozen=True):
    """The function and the arguments of a call, in OpenAI's shape."""

    name: Annotated[str, Meta(min_length=1)]
    """The function's name."""
    arguments: JsonObject | str
    """A JSON object, or its text."""


class CalledTool(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """A call that the model made earlier in the conversation."""

    id: Annotated[str, Meta(min_length=1)]
    """The `call_id` of the tool_call event. The tool's message refers to it."""
    name: Annotated[str, Meta(min_length=1)] = _ABSENT
    """The function's name. Required without `function`."""
    arguments: JsonObject | str = _ABSENT
    """A JSON object, or its text. Required without `function`."""
    type: Literal["function"] = "function"
    """The only kind."""
    function: CalledFunction | None = None
    """OpenAI's shape, in place of `name` and `arguments`. A decoded call has those."""

    def __post_init__(self) -> None:
        if self.function is None:
            for field in ("name", "arguments"):
                if _is_absent(getattr(self, field)):
                    raise ValueError(f"{field}: is required, here or in `function`")
        elif not (_is_absent(self.name) and _is_absent(self.arguments)):
            raise ValueError("function: holds the name and the arguments; give them in one place")
        else:
            force_setattr(self, "name", self.function.name)
            force_setattr(self, "arguments", self.function.arguments)
            force_setattr(self, "function", None)


class Message(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """One turn of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    """`developer` and `system` have the same meaning. `tool` holds a tool's result."""
    content: Content | None = None
    """Text, or parts, whose texts are joined unchanged. An assistant's message with tool_calls may lack it."""
    reasoning: str | None = None
    """The assistant's reasoning before its answer, from the reasoning channel."""
    tool_calls: Annotated[list[CalledTool], Meta(max_length=TOOL_CALLS)] = []
    """The assistant's tool calls, in order."""
    tool_call_id: str | None = None
    """The id of the call that a tool's message answers. Absent: the first call that is open, of the function `name` if
    that is given. A decoded command has the id."""
    name: str | None = None
    """The function that a tool's message comes from. Absent: the call's function. In another message: the speaker's
    name, for templates that write it."""

    def __post_init__(self) -> None:
        if self.role != "assistant":
            for field in ("reasoning", "tool_calls"):
                if getattr(self, field):
                    raise ValueError(f"{field}: only an assistant's message has it")
        if self.role != "tool":
            if self.tool_call_id is not None:
                raise ValueError("tool_call_id: only a tool's message has it")
        elif self.tool_call_id == "":
            raise ValueError("tool_call_id: must be the id of the call that the message answers")
        if self.content is None and not self.tool_calls:
            raise ValueError("content: is required, except in an assistant's message with tool_calls")
        if isinstance(self.content, list) and any(isinstance(part, ImageUrlPart) for part in self.content):
            parts = [part.native() if isinstance(part, ImageUrlPart) else part for part in self.content]
            force_setattr(self, "content", parts)


class Function(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """The purpose and the parameters of a tool."""

    name: Annotated[str, Meta(min_length=1, max_length=NAME_CHARACTERS)]
    """The function's name, which a call refers to."""
    description: str = ""
    """The function's purpose, for the model."""
    parameters: JsonObject = {}
    """A JSON Schema of the arguments object. Empty: no schema."""
    strict: bool = False
    """Enforce the schema even if the model may choose not to call."""


class Tool(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A function that the model may call, in OpenAI's shape."""

    type: Literal["function"] = "function"
    """The only kind."""
    function: Function
    """The function's description for the model."""


class ChosenFunction(Struct, forbid_unknown_fields=True, frozen=True):
    """The function to call, in OpenAI's shape."""

    name: str
    """The name of one of `tools`."""


class NamedTool(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """The function to call."""

    name: str = _ABSENT
    """The name of one of `tools`. Required without `function`."""
    type: Literal["function"] = "function"
    """The only kind."""
    function: ChosenFunction | None = None
    """OpenAI's shape, in place of `name`. A decoded command has the name."""

    def __post_init__(self) -> None:
        if self.function is None:
            if _is_absent(self.name):
                raise ValueError("name: is required, here or in `function`")
        elif not _is_absent(self.name):
            raise ValueError("function: holds the name; give it in one place")
        else:
            force_setattr(self, "name", self.function.name)
            force_setattr(self, "function", None)


class ContextFile(Struct, forbid_unknown_fields=True, frozen=True):
    """Another file of the project in which the model fills a gap, or a part of one."""

    name: str
    """Its path or name."""
    text: str
    """Its text."""
