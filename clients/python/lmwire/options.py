"""Types of the keyword arguments and plain data of requests, and the commands made from them.

Each dictionary has the fields of the Struct in lmwire_protocol with the same name. The Struct documents their meaning,
bounds and defaults, and may be passed instead. The worker checks the values.
"""

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

import msgspec

from lmwire_protocol import (
    Chat,
    Embed,
    Format,
    Generate,
    ImagePart,
    Load,
    Media,
    Message,
    NamedTool,
    Part,
    TextPart,
    Tokenize,
    Tool,
    Transcribe,
)


class MediaDict(TypedDict, total=False):
    """An image or a recording. Exactly one of the fields is set."""

    data: str
    path: str
    url: str


class TextPartDict(TypedDict):
    """A part of a message: text."""

    type: Literal["text"]
    text: str


class MediaPartDict(TypedDict):
    """A part of a message: an image or a recording."""

    type: Literal["image", "audio"]
    media: MediaDict


class CalledToolDict(TypedDict):
    """A tool call of the model, earlier in the conversation."""

    id: str
    name: str
    arguments: dict[str, Any] | str


class MessageDict(TypedDict):
    """A message as plain data."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: NotRequired[str | Sequence[Part | TextPartDict | MediaPartDict] | None]
    reasoning: NotRequired[str]
    tool_calls: NotRequired[list[CalledToolDict]]
    tool_call_id: NotRequired[str]
    name: NotRequired[str]


class FunctionDict(TypedDict):
    """A tool's name, description and parameters."""

    name: str
    description: NotRequired[str]
    parameters: NotRequired[dict[str, Any]]
    strict: NotRequired[bool]


class ToolDict(TypedDict):
    """A function that the model may call, in OpenAI's format."""

    type: Literal["function"]
    function: FunctionDict


class NamedToolDict(TypedDict):
    """The function that the model must call."""

    name: str


class JsonObjectFormatDict(TypedDict):
    """Output as any JSON object."""

    type: Literal["json_object"]


class JsonSchemaFormatDict(TypedDict):
    """Output as JSON that is valid against a JSON Schema."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class RegexFormatDict(TypedDict):
    """Output that a regular expression matches."""

    type: Literal["regex"]
    pattern: str


class LarkFormatDict(TypedDict):
    """Output that a Lark grammar generates."""

    type: Literal["lark"]
    grammar: str


class ChoiceFormatDict(TypedDict):
    """Output as one of several texts."""

    type: Literal["choice"]
    choices: list[str]


FormatDict: TypeAlias = (
    JsonObjectFormatDict | JsonSchemaFormatDict | RegexFormatDict | LarkFormatDict | ChoiceFormatDict
)


class LoadOptions(TypedDict, total=False):
    """Options of `load`; see `lmwire_protocol.Load`."""

    trust_remote_code: bool
    adapter_path: str
    draft_path: str
    context_len: int
    kv_bits: Literal[4, 8]
    force: bool


class GenerateOptions(TypedDict, total=False):
    """Options of `generate`; see `lmwire_protocol.Generation`."""

    max_tokens: int
    min_tokens: int
    ignore_eos: bool
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    xtc_probability: float
    xtc_threshold: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    penalty_window: int
    logit_bias: dict[int, float]
    seed: int
    stop: list[str]
    include_stop: bool
    logprobs: bool
    top_logprobs: int
    n: int
    format: Format | FormatDict
    truncate: Literal["none", "left", "middle"]
    cache: Literal["on", "off", "pin"]
    timeout_ms: int


class TemplateOptions(TypedDict, total=False):
    """Options that affect the prompt of a conversation; see `lmwire_protocol.Tokenize`."""

    tools: Sequence[Tool | ToolDict]
    chat_template: str
    template_args: dict[str, Any]
    add_generation_prompt: bool
    prefix: str
    reasoning: Literal["auto", "on", "off"]


class ChatOptions(GenerateOptions, TemplateOptions, total=False):
    """Options of `chat`; see `lmwire_protocol.Chat`."""

    tool_choice: Literal["auto", "none", "required"] | NamedTool | NamedToolDict
    parallel_tool_calls: bool
    reasoning_budget: int
    strict_media: bool


class EmbedOptions(TypedDict, total=False):
    """Options of `embed`; see `lmwire_protocol.Embed`."""

    normalize: bool
    dimensions: int


class TranscribeOptions(TypedDict, total=False):
    """Options of `transcribe`; see `lmwire_protocol.Transcribe`."""

    language: str
    prompt: str
    temperature: float
    words: bool
    timeout_ms: int


Messages: TypeAlias = Sequence[Message | MessageDict]
Inputs: TypeAlias = Sequence[str | TextPart | ImagePart | TextPartDict | MediaPartDict]
"""Texts and images to embed."""


def load_command(path: str, options: LoadOptions) -> Load:
    """Return the command that loads a model; `Worker.load` has the arguments."""
    return Load(path=path, **options)


def generate_command(prompt: str | list[int], options: GenerateOptions) -> Generate:
    """Return the command that continues a prompt; `Worker.generate` has the arguments."""
    return Generate(prompt=prompt, **_plain(options))


def chat_command(messages: Messages, options: ChatOptions) -> Chat:
    """Return the command that answers a conversation; `Worker.chat` has the arguments."""
    return Chat(messages=_plain([*messages]), **_plain(options))


def tokenize_command(prompt: str | Messages, options: TemplateOptions, *, count_only: bool) -> Tokenize:
    """Return the command that tokenizes a prompt.

    Args:
        prompt: Text, or a conversation.
        options: Options that affect the prompt of a conversation.
        count_only: Whether the worker returns only the number of tokens.
    """
    fields = {**_plain(options), "count_only": count_only}
    if isinstance(prompt, str):
        return Tokenize(prompt=prompt, **fields)
    return Tokenize(messages=_plain([*prompt]), **fields)


def embed_command(inputs: Inputs, options: EmbedOptions) -> Embed:
    """Return the command that embeds texts and images; `Worker.embed` has the arguments."""
    if isinstance(inputs, str):
        raise TypeError("give a list of texts: each gets a vector of its own")
    return Embed(input=_plain([*inputs]), **options)


def transcribe_command(audio: Media | MediaDict, options: TranscribeOptions) -> Transcribe:
    """Return the command that transcribes a recording; `Worker.transcribe` has the arguments."""
    return Transcribe(audio=_plain(audio), **options)


def _plain(value: object) -> Any:
    """Return the value as plain data: a command encodes that as well as Structs, and does not validate it."""
    return msgspec.to_builtins(value)
