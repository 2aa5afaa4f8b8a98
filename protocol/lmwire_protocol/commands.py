"""Every command of protocol 1: one Struct each, holding the fields between the envelope's `id` and `cmd`.

The envelope is separate so that a line always starts with its `id`: a worker can then recover the id of a line that it
cannot read. A JSON null counts as an absent field. Unknown fields are refused.
"""

from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta, Struct

from . import events
from .formats import Format
from .framing import json_bytes
from .limits import (
    CLIENT_BYTES,
    INPUTS,
    LOGIT_BIASES,
    MAX_INT,
    PROTOCOL_VERSION,
    SPEECH_PROMPT_BYTES,
    STOP_BYTES,
    STOP_STRINGS,
    STOP_TOLD_BYTES,
    TOOLS,
    TOP_LOGPROBS,
)
from .messages import ImagePart, Media, Message, NamedTool, TextPart, Tool

NonNegative = Annotated[int, Meta(ge=0, le=MAX_INT)]
Positive = Annotated[int, Meta(ge=1, le=MAX_INT)]


class Command(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """Base class of all commands. A subclass's docstring is its description in the schema."""

    name: ClassVar[str]
    """The value of `cmd`."""
    done: ClassVar[type[events.Done]]
    """The Struct of this command's `done` event."""
    streams: ClassVar[tuple[type[events.Event], ...]] = ()
    """Events that may come before the terminal."""
    out_of_band: ClassVar[bool] = False
    """True if the worker's reader answers the command at once, whatever the engine does. It cannot be cancelled."""
    barrier: ClassVar[bool] = False
    """True if the command waits for all earlier requests, and later requests wait for it."""


class Hello(Command, frozen=True):
    """Open a session: agree on a protocol version and describe the worker. Optional; answered at once."""

    name = "hello"
    done = events.HelloDone
    out_of_band = True

    protocol: tuple[Positive, Positive] = (PROTOCOL_VERSION, PROTOCOL_VERSION)
    """The lowest and the highest version that the host speaks."""
    client: Annotated[str, Meta(extra_json_schema={"maxLength": CLIENT_BYTES})] = ""
    """The host's name and version, for the worker's log; at most 128 bytes."""
    host_pid: Positive | None = None
    """An ancestor process of the worker. When it ends, the worker ends. Refused if it is not an ancestor."""

    def __post_init__(self) -> None:
        if self.protocol[0] > self.protocol[1]:
            raise ValueError("protocol: the first version must not be above the second")
        if len(self.client.encode()) > CLIENT_BYTES:
            raise ValueError(f"client: must be a string of 0 to {CLIENT_BYTES:,} bytes")


class Load(Command, frozen=True):
    """Load a model in place of the present one."""

    name = "load"
    done = events.ModelDone
    streams = (events.Progress,)
    barrier = True

    path: Annotated[str, Meta(min_length=1)]
    """A folder, a model hub id (`owner/name`) or an alias."""
    trust_remote_code: bool = False
    """Allow Python code in the model's folder to run. Off, such a model is refused."""
    adapter_path: Annotated[str, Meta(min_length=1)] | None = None
    """A folder with a LoRA adapter of the model. When the model is loaded already, only the adapter changes."""
    draft_path: Annotated[str, Meta(min_length=1)] | None = None
    """A smaller model with the same tokens, named like `path`. It proposes tokens that the model accepts or rejects. It
    does not change the answers, and the worker computes one answer at a time."""
    context_len: Positive | None = None
    """Maximum number of tokens of prompt and answer together. Absent: the model's own maximum, which is also the
    highest value."""
    kv_bits: Literal[4, 8] | None = None
    """Number of bits for each key and value of the KV cache. This takes less memory, changes answers slightly, and the
    worker computes one answer at a time."""
    force: bool = False
    """Load the model even if it seems not to fit into memory."""


class Unload(Command, frozen=True):
    """Unload the model and free its memory."""

    name = "unload"
    done = events.UnloadDone
    barrier = True


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
    logit_bias: Annotated[
        dict[NonNegative, Annotated[float, Meta(ge=-100, le=100)]], Meta(max_length=LOGIT_BIASES)
    ] = {}
    """Values to add to the logits of tokens, by token id as a string."""
    seed: NonNegative | None = None
    """The same seed, request and model give the same tokens, alone or in a batch, if the model computes the same logits
    in a batch as alone. Absent: random; `done` has the seed in use."""
    stop: Annotated[
        list[Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": STOP_BYTES})]],
        Meta(max_length=STOP_STRINGS),
    ] = []
    """End before the first of these strings, in the content or in the reasoning. Each has at most 1,024 bytes, and with
    n above 1 at most 3,072 bytes in its JSON form."""
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
    timeout_ms: Positive | None = None
    """Time limit after the request was read, waiting included, in milliseconds. The request then ends with its partial
    result."""

    def __post_init__(self) -> None:
        for index, text in enumerate(self.stop):
            if len(text.encode()) > STOP_BYTES:
                raise ValueError(f"stop[{index}]: must be a string of 1 to {STOP_BYTES:,} bytes")
            if self.n > 1 and json_bytes(text) > STOP_TOLD_BYTES:
                raise ValueError(f"stop[{index}]: must be up to {STOP_TOLD_BYTES:,} bytes in JSON when `n` is above 1")
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens: must be 0 to max_tokens, which is {self.max_tokens}")
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs: needs `logprobs`: true")


class Generate(Generation, frozen=True):
    """Continue a prompt without a chat template."""

    name = "generate"
    done = events.ResultDone

    prompt: str | Annotated[list[NonNegative], Meta(min_length=1)]
    """Text, which the model's tokenizer encodes (with a beginning-of-text token if the model has one), or token ids,
    which are used unchanged."""


Messages = Annotated[list[Message], Meta(min_length=1)]
Tools = Annotated[list[Tool], Meta(max_length=TOOLS)]


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
    template_args: dict[str, Any] = {}
    """Further variables for the template."""
    add_generation_prompt: bool = True
    """Open the assistant's turn. If false, the model continues the last message."""
    prefix: str = ""
    """Start of the reply. It is appended to the prompt, and the answer's events do not repeat it."""
    tool_choice: Literal["auto", "none", "required"] | NamedTool = "auto"
    """`none`: no call; `required`: at least one; a name: that function. The latter two are enforced token by token."""
    parallel_tool_calls: bool = True
    """If false, the answer ends after the first call."""
    reasoning: Literal["auto", "on", "off"] = "auto"
    """Turns the model's reasoning on or off; `auto` is the default of its chat template."""
    reasoning_budget: NonNegative | None = None
    """Maximum number of reasoning tokens. Then the reasoning is closed and the answer starts."""
    strict_media: bool = False
    """Refuse images and sounds that the model cannot take. If false, a note in the prompt replaces them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.tool_choice, NamedTool):
            if self.tool_choice.name not in (tool.function.name for tool in self.tools):
                raise ValueError(f"tool_choice.name: {self.tool_choice.name!r} is not among `tools`")
        elif self.tool_choice == "required" and not self.tools:
            raise ValueError("tool_choice: `required` needs `tools`")


class Tokenize(Command, frozen=True):
    """Convert a prompt to tokens without generating. Exactly one of `prompt` and `messages` is given."""

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
    template_args: dict[str, Any] = {}
    """The same as in `chat`."""
    add_generation_prompt: bool = True
    """The same as in `chat`."""
    prefix: str = ""
    """The same as in `chat`."""
    reasoning: Literal["auto", "on", "off"] = "auto"
    """The same as in `chat`."""
    count_only: bool = False
    """Send no token events."""

    def __post_init__(self) -> None:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("prompt: give exactly one of `prompt` and `messages`")
        if self.prompt is not None:
            plain = Tokenize(messages=[])
            for field in ("tools", "chat_template", "template_args", "add_generation_prompt", "prefix", "reasoning"):
                if getattr(self, field) != getattr(plain, field):
                    raise ValueError(f"{field}: goes with `messages`, not with `prompt`")


class Embed(Command, frozen=True):
    """Compute an embedding of each input: a vector whose direction stands for its meaning."""

    name = "embed"
    done = events.EmbedDone
    streams = (events.Embedding,)

    input: Annotated[list[str | TextPart | ImagePart], Meta(min_length=1, max_length=INPUTS)]
    """Texts, and images if the model takes them. Each input gets its own vector."""
    normalize: bool = True
    """Scale each vector to length 1."""
    dimensions: Positive | None = None
    """Number of leading values to keep of each vector. Absent: all, which is also the highest value."""
    encoding: Literal["base64", "float"] = "base64"
    """Encoding of the vectors: base64 of little-endian float32, or JSON numbers."""


class Transcribe(Command, frozen=True):
    """Transcribe the speech of a recording."""

    name = "transcribe"
    done = events.TranscribeDone
    streams = (events.Progress, events.Segment)

    audio: Media
    """The recording."""
    language: Annotated[str, Meta(min_length=2, max_length=32)] | None = None
    """The spoken language, such as `en` or `english`. Absent: the model detects it."""
    prompt: Annotated[str, Meta(extra_json_schema={"maxLength": SPEECH_PROMPT_BYTES})] = ""
    """Earlier speech, or the spelling of names; at most 4,096 bytes."""
    temperature: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Sampling temperature. 0 takes the most probable words."""
    words: bool = False
    """Send the times of each word as well."""
    timeout_ms: Positive | None = None
    """Time limit after the request was read, waiting included, in milliseconds. The request then ends with its partial
    result."""

    def __post_init__(self) -> None:
        if len(self.prompt.encode()) > SPEECH_PROMPT_BYTES:
            raise ValueError(f"prompt: must be a string of 0 to {SPEECH_PROMPT_BYTES:,} bytes")


class Cache(Command, frozen=True):
    """Change the cache of earlier prompts and answers."""

    name = "cache"
    done = events.CacheDone

    action: Literal["clear"]
    """`clear`: drop all entries, pinned ones included."""


class Info(Command, frozen=True):
    """Describe the loaded model."""

    name = "info"
    done = events.ModelDone


class Cancel(Command, frozen=True):
    """End one request, or all. Exactly one of the two fields is given."""

    name = "cancel"
    done = events.CancelDone
    out_of_band = True

    target: Annotated[str, Meta(min_length=1)] | None = None
    """The id of the request to end. A hello, cancel, ping, stats or quit cannot be cancelled."""
    all: Literal[True] | None = None
    """End every request that can be cancelled."""

    def __post_init__(self) -> None:
        if (self.target is None) == (self.all is None):
            raise ValueError("target: give exactly one of `target` and `all`")


class Ping(Command, frozen=True):
    """Ask whether the worker is alive and makes progress."""

    name = "ping"
    done = events.PingDone
    out_of_band = True


class Stats(Command, frozen=True):
    """Ask for the worker's counters."""

    name = "stats"
    done = events.StatsDone
    out_of_band = True


class Quit(Command, frozen=True):
    """End the worker. Its `done` is the last line."""

    name = "quit"
    done = events.QuitDone
    out_of_band = True

    drain: bool = False
    """Let unfinished requests finish instead of cancelling them."""


COMMANDS: Final[dict[str, type[Command]]] = {
    command.name: command
    for command in (
        Hello,
        Load,
        Unload,
        Generate,
        Chat,
        Tokenize,
        Embed,
        Transcribe,
        Cache,
        Info,
        Cancel,
        Ping,
        Stats,
        Quit,
    )
}
"""Every command by the value of `cmd`."""
