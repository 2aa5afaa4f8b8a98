"""Types of the keyword arguments and plain data of requests.

Each dictionary has the fields of the Struct in lmwire_protocol with the same name. The Struct documents their meaning,
bounds and defaults, and may be passed instead. The worker checks the values.
"""

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from lmwire_protocol import (
    ContextFile,
    Format,
    ImagePart,
    Message,
    NamedTool,
    Part,
    TextPart,
    TokensPart,
    Tool,
)
from lmwire_protocol.commands import ReasoningEffort


class MediaDict(TypedDict, total=False):
    """An image or a recording. Exactly one of the fields is set."""

    data: str
    path: str
    url: str


class TokensPartDict(TypedDict):
    """An input of `embed` as tokens of the model's vocabulary."""

    type: Literal["tokens"]
    token_ids: list[int]


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


class ContextFileDict(TypedDict):
    """Another file of the project in which the model fills a gap."""

    name: str
    text: str


class LoadOptions(TypedDict, total=False):
    """Options of `load`; see `lmwire_protocol.Load`."""

    trust_remote_code: bool
    adapter_path: str
    draft_path: str
    chat_template_name: str
    tool_format: str
    context_len: int
    kv_bits: Literal[4, 8]
    dtype: Literal["float32", "bfloat16", "float16"]
    force: bool
    reasoning_start: str
    reasoning_end: str
    generation_config: bool


class UnformattedOptions(TypedDict, total=False):
    """Options that `generate` and `chat` share, without `format`; see `lmwire_protocol.Generation`."""

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
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_range: int
    dry_sequence_breakers: list[str]
    banned_strings: list[str]
    logit_bias: dict[int, float]
    seed: int
    stop: list[str]
    include_stop: bool
    logprobs: bool
    top_logprobs: int
    n: int
    truncate: Literal["none", "left", "middle"]
    cache: Literal["on", "off", "pin"]
    cache_report: bool
    timeout_ms: int


class GenerateOptions(UnformattedOptions, total=False):
    """Options that `generate` and `chat` share; see `lmwire_protocol.Generation`."""

    format: Format | FormatDict


class UnformattedPromptOptions(UnformattedOptions, total=False):
    """Options of `generate` without `format`."""

    suffix: str
    context_files: Sequence[ContextFile | ContextFileDict]
    prompt_logprobs: bool


class PromptOptions(UnformattedPromptOptions, GenerateOptions, total=False):
    """Options of `generate`; see `lmwire_protocol.Generate`."""


class TemplateOptions(TypedDict, total=False):
    """Options that affect the prompt of a conversation; see `lmwire_protocol.Tokenize`."""

    tools: Sequence[Tool | ToolDict]
    chat_template: str
    template_args: dict[str, Any]
    add_generation_prompt: bool
    continue_final_message: bool
    prefix: str
    reasoning: Literal["auto", "on", "off"]
    reasoning_effort: ReasoningEffort


class UnformattedChatOptions(UnformattedOptions, TemplateOptions, total=False):
    """Options of `chat` without `format`."""

    tool_choice: Literal["auto", "none", "required"] | NamedTool | NamedToolDict
    parallel_tool_calls: bool
    reasoning_budget: int
    strict_media: bool


class ChatOptions(UnformattedChatOptions, GenerateOptions, total=False):
    """Options of `chat`; see `lmwire_protocol.Chat`."""


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


class SpeakOptions(TypedDict, total=False):
    """Options of `speak`; see `lmwire_protocol.Speak`."""

    voice: str
    language: str
    instructions: str
    speed: float
    max_seconds: int
    seed: int
    timeout_ms: int


Messages: TypeAlias = Sequence[Message | MessageDict]
Inputs: TypeAlias = Sequence[str | TextPart | ImagePart | TokensPart | TextPartDict | MediaPartDict | TokensPartDict]
"""Texts, tokens and images to embed."""
