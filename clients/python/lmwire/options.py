"""What a caller gives as keywords and plain data, and the commands made of it.

Each dictionary has the fields of the Struct in lmwire_protocol that it is named after: what they mean, their bounds
and their defaults stand there. Structs may be given as well. What is wrong with a value is for the worker to say.
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
    """An image or a sound: exactly one of the fields."""

    data: str
    path: str
    url: str


class TextPartDict(TypedDict):
    """A piece of text in a message."""

    type: Literal["text"]
    text: str


class MediaPartDict(TypedDict):
    """An image or a sound in a message."""

    type: Literal["image", "audio"]
    media: MediaDict


class CalledToolDict(TypedDict):
    """A call that the model made earlier in the conversation."""

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
    """What a tool does, and what it takes."""

    name: str
    description: NotRequired[str]
    parameters: NotRequired[dict[str, Any]]
    strict: NotRequired[bool]


class ToolDict(TypedDict):
    """A function that the model may call, in OpenAI's shape."""

    type: Literal["function"]
    function: FunctionDict


class NamedToolDict(TypedDict):
    """The one function to call."""

    name: str


class JsonObjectFormatDict(TypedDict):
    """Any JSON object."""

    type: Literal["json_object"]


class JsonSchemaFormatDict(TypedDict):
    """JSON that a schema holds for."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class RegexFormatDict(TypedDict):
    """Text that a regular expression matches."""

    type: Literal["regex"]
    pattern: str


class LarkFormatDict(TypedDict):
    """Text of a grammar."""

    type: Literal["lark"]
    grammar: str


class ChoiceFormatDict(TypedDict):
    """One of several texts."""

    type: Literal["choice"]
    choices: list[str]


FormatDict: TypeAlias = (
    JsonObjectFormatDict | JsonSchemaFormatDict | RegexFormatDict | LarkFormatDict | ChoiceFormatDict
)


class LoadOptions(TypedDict, total=False):
    """How to load a model; see `lmwire_protocol.Load`."""

    trust_remote_code: bool
    adapter_path: str
    draft_path: str
    context_len: int
    kv_bits: Literal[4, 8]
    force: bool


class Options(TypedDict, total=False):
    """How to generate; see `lmwire_protocol.Generation`."""

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
    """How a conversation is written into a prompt; see `lmwire_protocol.Tokenize`."""

    tools: Sequence[Tool | ToolDict]
    chat_template: str
    template_args: dict[str, Any]
    add_generation_prompt: bool
    prefix: str
    reasoning: Literal["auto", "on", "off"]


class ChatOptions(Options, TemplateOptions, total=False):
    """How to answer a conversation; see `lmwire_protocol.Chat`."""

    tool_choice: Literal["auto", "none", "required"] | NamedTool | NamedToolDict
    parallel_tool_calls: bool
    reasoning_budget: int
    strict_media: bool


class EmbedOptions(TypedDict, total=False):
    """What vectors are asked for; see `lmwire_protocol.Embed`."""

    normalize: bool
    dimensions: int


class TranscribeOptions(TypedDict, total=False):
    """How to write down speech; see `lmwire_protocol.Transcribe`."""

    language: str
    prompt: str
    temperature: float
    words: bool
    timeout_ms: int


Messages: TypeAlias = Sequence[Message | MessageDict]
Inputs: TypeAlias = Sequence[str | TextPart | ImagePart | TextPartDict | MediaPartDict]
"""Texts and images to embed."""


def load_command(path: str, options: LoadOptions) -> Load:
    return Load(path=path, **options)


def generate_command(prompt: str | list[int], options: Options) -> Generate:
    return Generate(prompt=prompt, **_plain(options))


def chat_command(messages: Messages, options: ChatOptions) -> Chat:
    return Chat(messages=_plain([*messages]), **_plain(options))


def tokenize_command(prompt: str | Messages, options: TemplateOptions, *, count_only: bool) -> Tokenize:
    fields = {**_plain(options), "count_only": count_only}
    if isinstance(prompt, str):
        return Tokenize(prompt=prompt, **fields)
    return Tokenize(messages=_plain([*prompt]), **fields)


def embed_command(inputs: Inputs, options: EmbedOptions) -> Embed:
    if isinstance(inputs, str):
        raise TypeError("give a list of texts: each gets a vector of its own")
    return Embed(input=_plain([*inputs]), **options)


def transcribe_command(audio: Media | MediaDict, options: TranscribeOptions) -> Transcribe:
    return Transcribe(audio=_plain(audio), **options)


def _plain(value: object) -> Any:
    """The value without Structs. A command is written as well with plain data in it, and then looks into none."""
    return msgspec.to_builtins(value)
