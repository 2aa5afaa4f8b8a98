"""The commands `generate` and `chat`, and `tokenize`, which shares their prompts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from msgspec import Meta
from msgspec.structs import force_setattr

from .. import events
from ..formats import Format
from ..framing import json_bytes
from ..limits import (
    BANNED_STRING_BYTES,
    BANNED_STRINGS,
    CONTEXT_FILES,
    DRY_BREAKER_BYTES,
    DRY_BREAKERS,
    LOGIT_BIASES,
    MESSAGES,
    PROMPT_TOKENS,
    STOP_BYTES,
    STOP_STRINGS,
    STOP_TOLD_BYTES,
    TOOLS,
    TOP_LOGPROBS,
)
from ..messages import ContextFile, JsonObject, Message, NamedTool, Tool
from .base import Command, NonNegative, Positive

_TEMPLATE_FIELDS: Final = (
    "tools",
    "chat_template",
    "template_args",
    "add_generation_prompt",
    "continue_final_message",
    "prefix",
    "reasoning",
    "reasoning_effort",
)
"""Fields of `tokenize` that apply to messages only."""
Messages = Annotated[list[Message], Meta(min_length=1, max_length=MESSAGES)]
Tools = Annotated[list[Tool], Meta(max_length=TOOLS)]
ReasoningEffort: TypeAlias = Literal["minimal", "low", "medium", "high", "xhigh", "max"]
if TYPE_CHECKING:
    StopStrings: TypeAlias = list[str]
else:  # one string is accepted, and replaced by a list
    _StopString = Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": STOP_BYTES})]
    StopStrings = _StopString | Annotated[list[_StopString], Meta(max_length=STOP_STRINGS)]
_Breaker = Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": DRY_BREAKER_BYTES})]
_BannedString = Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": BANNED_STRING_BYTES})]


class Generation(Command, frozen=True, kw_only=True):
    """Options for generation: the fields that `generate` and `chat` share."""

    streams = (events.Progress, events.Token)

    max_tokens: NonNegative | None = None
    """Maximum number of tokens to generate. Absent: the rest of the context. 0 only processes the prompt."""
    min_tokens: NonNegative = 0
    """Minimum number of tokens before the model may end its turn."""
    ignore_eos: bool = False
    """The model may not end its turn: it continues to max_tokens or a stop string."""
    temperature: Annotated[float, Meta(ge=0, le=100)] = 0.0
    """0 is greedy."""
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Sample from the smallest set of tokens whose probabilities add up to this; 1 is off."""
    top_k: NonNegative = 0
    """Sample from this many most probable tokens; 0 is off."""
    min_p: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Drop tokens less probable than this share of the most probable one's; 0 is off."""
    xtc_probability: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Probability of excluding the top choices: all tokens above xtc_threshold except the least probable one. 0 is
    off."""
    xtc_threshold: Annotated[float, Meta(ge=0, le=0.5)] = 0.1
    """Probability above which a token is a top choice."""
    repetition_penalty: Annotated[float, Meta(gt=0, le=10)] = 1.0
    """Divide (multiply, when negative) the logits of tokens within the window by this; 1 is off."""
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] = 0.0
    """Subtract this from the logits of tokens within the window, once; 0 is off."""
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] = 0.0
    """Subtract this from the logits of tokens within the window, once for each occurrence; 0 is off."""
    penalty_window: NonNegative = 64
    """Number of newest tokens, prompt included, to which the penalties apply; 0 is all."""
    dry_multiplier: Annotated[float, Meta(ge=0, le=100)] = 0.0
    """Strength of DRY, the penalty on tokens that would continue a repetition; 0 is off."""
    dry_base: Annotated[float, Meta(ge=1, le=10)] = 1.75
    """Factor of DRY's penalty for each further token of the repetition."""
    dry_allowed_length: NonNegative = 2
    """Length of the repetition from which its continuation is penalized, in tokens."""
    dry_range: NonNegative = 0
    """Number of newest tokens, prompt included, in which DRY looks for repetitions; 0 is all."""
    dry_sequence_breakers: Annotated[list[_Breaker], Meta(max_length=DRY_BREAKERS)] | None = None
    """Strings across which no repetition reaches. Each has at most 64 bytes. Absent: a line feed, a colon, a quotation
    mark and an asterisk."""
    banned_strings: Annotated[list[_BannedString], Meta(max_length=BANNED_STRINGS)] = []
    """Strings that the answer must not contain, in upper or lower case. Each has at most 256 bytes. Where one is
    complete, the worker takes the answer back to the token that began it, and forbids that token there."""
    logit_bias: Annotated[
        dict[NonNegative, Annotated[float, Meta(ge=-100, le=100)]], Meta(max_length=LOGIT_BIASES)
    ] = {}
    """Values to add to the logits of tokens, by token id as a string."""
    seed: NonNegative | None = None
    """The same seed, request and model give the same tokens, alone or in a batch, if the model computes the same logits
    in a batch as alone. Absent: random; `done` has the seed in use."""
    stop: StopStrings = []
    """End before the first of these strings, in the content or in the reasoning. Each has at most 1,024 bytes, and with
    n above 1 at most 3,072 bytes in its JSON form. A string stands for a list of one; a decoded command has the list.
    """
    include_stop: bool = False
    """Include the stop string that ended the answer in its text."""
    logprobs: bool = False
    """Send each token's log-probability."""
    top_logprobs: Annotated[int, Meta(ge=0, le=TOP_LOGPROBS)] = 0
    """Number of most probable tokens to send for each place, with their log-probabilities. Needs `logprobs`."""
    n: Annotated[int, Meta(ge=1, le=16)] = 1
    """Number of answers to the prompt; answer i uses seed + i."""
    format: Format | None = None
    """Format of the answer, enforced token by token. It applies after any reasoning."""
    truncate: Literal["none", "left", "middle"] = "none"
    """Part to drop from a prompt that is longer than the context: its beginning or its middle. With `none` the request
    is refused."""
    cache: Literal["on", "off", "pin"] = "on"
    """`on`: start from the cached part of the prompt, and cache the prompt. `off`: neither. `pin`: like `on`, and keep
    the prompt in the cache until it is cleared."""
    cache_report: bool = False
    """Report why tokens of the prompt did not come from the cache."""
    timeout_ms: Positive | None = None
    """Time limit after the request was read, waiting included, in milliseconds. The request then ends with its partial
    result."""

    @property
    def is_forced(self) -> bool:
        """Return whether all answers must have a format, or call tools."""
        return self.format is not None

    def __post_init__(self) -> None:
        alone = isinstance(self.stop, str)
        if alone:
            force_setattr(self, "stop", [self.stop])
        for index, text in enumerate(self.stop):
            field = "stop" if alone else f"stop[{index}]"
            if len(text.encode()) > STOP_BYTES:
                raise ValueError(f"{field}: must be a string of 1 to {STOP_BYTES:,} bytes")
            if self.n > 1 and json_bytes(text) > STOP_TOLD_BYTES:
                raise ValueError(f"{field}: must be up to {STOP_TOLD_BYTES:,} bytes in JSON when `n` is above 1")
        _check_bytes("dry_sequence_breakers", self.dry_sequence_breakers or (), DRY_BREAKER_BYTES)
        _check_bytes("banned_strings", self.banned_strings, BANNED_STRING_BYTES)
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens: must be 0 to max_tokens, which is {self.max_tokens}")
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs: needs `logprobs`: true")


def _check_bytes(field: str, texts: Sequence[str], limit: int) -> None:
    for index, text in enumerate(texts):
        if len(text.encode()) > limit:
            raise ValueError(f"{field}[{index}]: must be a string of 1 to {limit} bytes")


class Generate(Generation, frozen=True):
    """Continue a prompt without a chat template, or fill the gap between a prompt and a suffix."""

    name = "generate"
    done = events.ResultDone

    prompt: str | Annotated[list[NonNegative], Meta(min_length=1, max_length=PROMPT_TOKENS)]
    """Text, which the model's tokenizer encodes (with a beginning-of-text token if the model has one), or token ids,
    which are used unchanged."""
    suffix: str | None = None
    """Text after a gap, which the answer fills. `prompt` is then the text before the gap. Needs a model with the
    capability `suffix`."""
    context_files: Annotated[list[ContextFile], Meta(max_length=CONTEXT_FILES)] = []
    """Other files that the model sees before the text around the gap, the most relevant last. Needs `suffix`."""

    prompt_logprobs: bool = False
    """Send the log-probability of each token of the prompt, and `top_logprobs` alternatives. The prompt is computed as
    a whole, whatever is cached."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.suffix is not None and not isinstance(self.prompt, str):
            raise ValueError("suffix: needs a `prompt` of text, not of token ids")
        if self.context_files and self.suffix is None:
            raise ValueError("context_files: needs `suffix`")


class Chat(Generation, frozen=True):
    """Answer a conversation, formatted with the model's chat template."""

    name = "chat"
    done = events.ResultDone
    streams = (events.Progress, events.Token, events.ToolCall)

    messages: Messages
    """The conversation so far, oldest first."""
    tools: Tools = []
    """Functions that the model may call."""
    chat_template: str | None = None
    """A Jinja template to use in place of the model's own."""
    template_args: JsonObject = {}
    """Further variables for the template."""
    add_generation_prompt: bool = True
    """Open the assistant's turn. If false, the prompt ends where the last message's turn ends."""
    continue_final_message: bool = False
    """Leave out the end of the last message's turn, so that the model continues its text. Needs `add_generation_prompt`
    false."""
    prefix: str = ""
    """Start of the reply. It is appended to the prompt, and the answer's events do not repeat it."""
    tool_choice: Literal["auto", "none", "required"] | NamedTool = "auto"
    """`none`: no call; `required`: at least one; a name: that function. The latter two are enforced token by token."""
    parallel_tool_calls: bool = True
    """If false, the answer ends after the first call."""
    reasoning: Literal["auto", "on", "off"] = "auto"
    """Turns the model's reasoning on or off; `auto` is the default of its chat template."""
    reasoning_effort: ReasoningEffort | None = None
    """Extent of the reasoning, if there is any: a word for the chat template, or a budget if that takes none."""
    reasoning_budget: NonNegative | None = None
    """Maximum number of reasoning tokens. Then the reasoning is closed and the answer starts."""
    strict_media: bool = False
    """Refuse images and sounds that the model cannot take. If false, a note in the prompt replaces them."""

    @property
    def callable_tools(self) -> Tools:
        """The tools that the answer may call."""
        return self.tools if self.tool_choice != "none" else []

    @property
    def is_forced(self) -> bool:
        """Return whether all answers must have a format, or call tools."""
        return super().is_forced or (bool(self.tools) and self.tool_choice not in ("auto", "none"))

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_continued(self)
        if isinstance(self.tool_choice, NamedTool):
            if self.tool_choice.name not in (tool.function.name for tool in self.tools):
                raise ValueError(f"tool_choice.name: {self.tool_choice.name!r} is not among `tools`")
        elif self.tool_choice == "required" and not self.tools:
            raise ValueError("tool_choice: `required` needs `tools`")


class Tokenize(Command, frozen=True):
    """Convert a prompt to tokens, or tokens to their text. One of `prompt`, `messages` and `token_ids` is given."""

    name = "tokenize"
    done = events.TokenizeDone
    streams = (events.Token,)

    prompt: str | None = None
    """Text, as `generate` takes it."""
    messages: Messages | None = None
    """A conversation, as `chat` takes it."""
    tools: Tools = []
    """The same as in `chat`."""
    chat_template: str | None = None
    """The same as in `chat`."""
    template_args: JsonObject = {}
    """The same as in `chat`."""
    add_generation_prompt: bool = True
    """The same as in `chat`."""
    continue_final_message: bool = False
    """The same as in `chat`."""
    prefix: str = ""
    """The same as in `chat`."""
    reasoning: Literal["auto", "on", "off"] = "auto"
    """The same as in `chat`."""
    reasoning_effort: ReasoningEffort | None = None
    """The same as in `chat`."""
    count_only: bool = False
    """Send no token events."""
    add_special_tokens: bool = True
    """Add the tokens that the tokenizer puts around a text, such as the beginning-of-text token. False only with
    `prompt`."""
    token_ids: Annotated[list[NonNegative], Meta(min_length=1, max_length=PROMPT_TOKENS)] | None = None
    """Tokens, whose text is returned."""

    def __post_init__(self) -> None:
        given = [name for name in ("prompt", "messages", "token_ids") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("prompt: give exactly one of `prompt`, `messages` and `token_ids`")
        if self.messages is None:
            plain = Tokenize(messages=[])
            for field in _TEMPLATE_FIELDS:
                if getattr(self, field) != getattr(plain, field):
                    raise ValueError(f"{field}: goes with `messages`, not with `{given[0]}`")
        if not self.add_special_tokens and self.prompt is None:
            raise ValueError(f"add_special_tokens: goes with `prompt`, not with `{given[0]}`")
        _check_continued(self)


def _check_continued(command: Chat | Tokenize) -> None:
    if command.continue_final_message and command.add_generation_prompt:
        raise ValueError("continue_final_message: needs `add_generation_prompt`: false")
