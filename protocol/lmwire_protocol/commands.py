"""Every command of protocol 1: one Struct each, holding the fields between the envelope's `id` and `cmd`.

The envelope is apart from the fields so that a line always starts with its `id`, which lets a worker recover the id
of a line that it cannot read. A JSON null counts as an absent field. Unknown fields are refused.
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
    """What all commands share. A subclass's docstring is its description in the schema."""

    name: ClassVar[str]
    """The value of `cmd`."""
    done: ClassVar[type[events.Done]]
    """The Struct of this command's `done` event."""
    streams: ClassVar[tuple[type[events.Event], ...]] = ()
    """The events that may come before the terminal."""
    oob: ClassVar[bool] = False
    """Out of band: the worker's reader answers it at once, whatever the engine does; it cannot be cancelled."""
    barrier: ClassVar[bool] = False
    """Waits for all earlier requests to end, and later ones wait for it."""


class Hello(Command, frozen=True):
    """Opens a session: agrees on a protocol version and tells what the worker is. Optional; answered at once."""

    name = "hello"
    done = events.HelloDone
    oob = True

    protocol: tuple[Positive, Positive] = (PROTOCOL_VERSION, PROTOCOL_VERSION)
    """The lowest and the highest version that the host speaks."""
    client: Annotated[str, Meta(extra_json_schema={"maxLength": CLIENT_BYTES})] = ""
    """The host's name and version, for the worker's log; at most 128 bytes."""
    host_pid: Positive | None = None
    """A process above the worker; when it ends, the worker ends. Refused when it is not an ancestor."""

    def __post_init__(self) -> None:
        if self.protocol[0] > self.protocol[1]:
            raise ValueError("protocol: the first version must not be above the second")
        if len(self.client.encode()) > CLIENT_BYTES:
            raise ValueError(f"client: must be a string of 0 to {CLIENT_BYTES:,} bytes")


class Load(Command, frozen=True):
    """Loads a model in place of the present one."""

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
    """A smaller model of the same tokens, named as `path` is, which proposes what the model then accepts or not. It
    changes no answer, and answers come one at a time."""
    context_len: Positive | None = None
    """Tokens of prompt and answer together, at most; the model's own when absent, and not above it."""
    kv_bits: Literal[4, 8] | None = None
    """Keep keys and values in so many bits, which takes less memory and gives slightly other answers, one at a time."""
    force: bool = False
    """Load even what does not seem to fit into memory."""


class Unload(Command, frozen=True):
    """Drops the model and gives its memory back."""

    name = "unload"
    done = events.UnloadDone
    barrier = True


class Generation(Command, frozen=True, kw_only=True):
    """How to generate: the fields that `generate` and `chat` share."""

    streams = (events.Progress, events.Token)

    max_tokens: NonNegative | None = None
    """Tokens to generate at most; the rest of the context when absent. 0 only processes the prompt."""
    min_tokens: NonNegative = 0
    """The model may not end its turn before so many tokens."""
    ignore_eos: bool = False
    """The model may not end its turn at all: it goes on to max_tokens or a stop string."""
    temperature: Annotated[float, Meta(ge=0, le=100)] = 0.0
    """0 is greedy."""
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Sample from the smallest set of tokens whose probabilities add up to this; 1 is off."""
    top_k: NonNegative = 0
    """Sample from this many most probable tokens; 0 is off."""
    min_p: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Drop tokens less probable than this share of the most probable one's; 0 is off."""
    xtc_probability: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """How often to exclude the top choices: all tokens above xtc_threshold but the least probable of them; 0 is off."""
    xtc_threshold: Annotated[float, Meta(ge=0, le=0.5)] = 0.1
    """The probability from which on a token is a top choice."""
    repetition_penalty: Annotated[float, Meta(gt=0, le=10)] = 1.0
    """Divide (multiply, when negative) the logits of tokens within the window by this; 1 is off."""
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] = 0.0
    """Take this from the logits of tokens within the window, once; 0 is off."""
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] = 0.0
    """Take this from the logits of tokens within the window, once for each time; 0 is off."""
    penalty_window: NonNegative = 64
    """The newest tokens, prompt included, that the penalties look at; 0 is all."""
    logit_bias: Annotated[
        dict[NonNegative, Annotated[float, Meta(ge=-100, le=100)]], Meta(max_length=LOGIT_BIASES)
    ] = {}
    """Token ids, as strings, and what to add to their logits."""
    seed: NonNegative | None = None
    """The same seed, request and model give the same tokens, alone or among others, wherever the model computes the
    same logits in a batch as alone. Random when absent; see `done`."""
    stop: Annotated[
        list[Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": STOP_BYTES})]],
        Meta(max_length=STOP_STRINGS),
    ] = []
    """End before the first of these strings, in the content or in the reasoning; at most 1,024 bytes each, and with n
    above 1 at most 3,072 bytes in their JSON form."""
    include_stop: bool = False
    """Show the stop string that ended it."""
    logprobs: bool = False
    """Send each token's log-probability."""
    top_logprobs: Annotated[int, Meta(ge=0, le=TOP_LOGPROBS)] = 0
    """And those of this many most probable tokens at its place. Needs `logprobs`."""
    n: Annotated[int, Meta(ge=1, le=16)] = 1
    """Answers to the one prompt; answer i uses seed + i."""
    format: Format | None = None
    """What the answer must be: enforced token by token, behind the reasoning if there is any."""
    truncate: Literal["none", "left", "middle"] = "none"
    """What to leave out of a prompt that is longer than the context: its beginning, its middle, or, with `none`,
    nothing: it is refused."""
    cache: Literal["on", "off", "pin"] = "on"
    """Whether to begin with what is cached of the prompt, and to keep it. `pin`: keep it until the cache is cleared."""
    timeout_ms: Positive | None = None
    """End with what there is so long after the request was read, waiting included."""

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
    """Continues a prompt as it stands."""

    name = "generate"
    done = events.ResultDone

    prompt: str | Annotated[list[NonNegative], Meta(min_length=1)]
    """Text, which the model's tokenizer encodes (with a beginning-of-text token where the model has one), or token
    ids, which are used as they are."""


Messages = Annotated[list[Message], Meta(min_length=1)]
Tools = Annotated[list[Tool], Meta(max_length=TOOLS)]


class Chat(Generation, frozen=True):
    """Answers a conversation, written into the model's chat template."""

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
    """Open the assistant's turn. Off, the last message is continued as it stands."""
    prefix: str = ""
    """How the reply starts: put behind the prompt, and not part of the answer's events."""
    tool_choice: Literal["auto", "none", "required"] | NamedTool = "auto"
    """`none`: no call; `required`: at least one; a name: that function. The latter two are enforced token by token."""
    parallel_tool_calls: bool = True
    """Off, the answer ends behind the first call."""
    reasoning: Literal["auto", "on", "off"] = "auto"
    """Whether the model thinks before it answers; `auto` is its template's default."""
    reasoning_budget: NonNegative | None = None
    """Tokens of thought after which the thought is closed and the answer begins."""
    strict_media: bool = False
    """Refuse images and sounds that the model cannot take, which are otherwise told to it as a note."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.tool_choice, NamedTool):
            if self.tool_choice.name not in (tool.function.name for tool in self.tools):
                raise ValueError(f"tool_choice.name: {self.tool_choice.name!r} is not among `tools`")
        elif self.tool_choice == "required" and not self.tools:
            raise ValueError("tool_choice: `required` needs `tools`")


class Tokenize(Command, frozen=True):
    """Tells what a prompt comes to in tokens, without generating. Exactly one of `prompt` and `messages`."""

    name = "tokenize"
    done = events.TokenizeDone
    streams = (events.Token,)

    prompt: str | None = None
    """Text, as `generate` takes it."""
    messages: Messages | None = None
    """A conversation, as `chat` takes it."""
    tools: Tools = []
    """As in `chat`."""
    chat_template: str | None = None
    """As in `chat`."""
    template_args: dict[str, Any] = {}
    """As in `chat`."""
    add_generation_prompt: bool = True
    """As in `chat`."""
    prefix: str = ""
    """As in `chat`."""
    reasoning: Literal["auto", "on", "off"] = "auto"
    """As in `chat`."""
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
    """Turns each input into a vector whose direction stands for its meaning."""

    name = "embed"
    done = events.EmbedDone
    streams = (events.Embedding,)

    input: Annotated[list[str | TextPart | ImagePart], Meta(min_length=1, max_length=INPUTS)]
    """Texts, and images where the model takes them; each gets a vector of its own."""
    normalize: bool = True
    """Scale each vector to length 1."""
    dimensions: Positive | None = None
    """Keep only so many of the first numbers of each vector; all when absent, and not above those."""
    encoding: Literal["base64", "float"] = "base64"
    """How the numbers are written: as base64 of little-endian float32, or as JSON numbers."""


class Transcribe(Command, frozen=True):
    """Writes down what is said in a recording."""

    name = "transcribe"
    done = events.TranscribeDone
    streams = (events.Progress, events.Segment)

    audio: Media
    """The recording."""
    language: Annotated[str, Meta(min_length=2, max_length=32)] | None = None
    """What is spoken, as `en` or `english`; the model finds out when absent."""
    prompt: Annotated[str, Meta(extra_json_schema={"maxLength": SPEECH_PROMPT_BYTES})] = ""
    """What was said before, or names as they are to be spelt; at most 4,096 bytes."""
    temperature: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """0 takes the most probable words."""
    words: bool = False
    """Tell each word's time as well."""
    timeout_ms: Positive | None = None
    """End with what there is so long after the request was read, waiting included."""

    def __post_init__(self) -> None:
        if len(self.prompt.encode()) > SPEECH_PROMPT_BYTES:
            raise ValueError(f"prompt: must be a string of 0 to {SPEECH_PROMPT_BYTES:,} bytes")


class Cache(Command, frozen=True):
    """Changes what is kept of earlier prompts and answers."""

    name = "cache"
    done = events.CacheDone

    action: Literal["clear"]
    """`clear`: drop all of it, what is pinned too."""


class Info(Command, frozen=True):
    """Tells what is loaded."""

    name = "info"
    done = events.ModelDone


class Cancel(Command, frozen=True):
    """Ends one request, or all. Exactly one of the two fields."""

    name = "cancel"
    done = events.CancelDone
    oob = True

    target: Annotated[str, Meta(min_length=1)] | None = None
    """The id of the request to end. Not that of a hello, cancel, ping, stats or quit."""
    all: Literal[True] | None = None
    """End every request that can be cancelled."""

    def __post_init__(self) -> None:
        if (self.target is None) == (self.all is None):
            raise ValueError("target: give exactly one of `target` and `all`")


class Ping(Command, frozen=True):
    """Asks whether the worker lives and makes progress."""

    name = "ping"
    done = events.PingDone
    oob = True


class Stats(Command, frozen=True):
    """Asks for the worker's counters."""

    name = "stats"
    done = events.StatsDone
    oob = True


class Quit(Command, frozen=True):
    """Ends the worker. Its `done` is the last line."""

    name = "quit"
    done = events.QuitDone
    oob = True

    drain: bool = False
    """Let unfinished requests end by themselves instead of cancelling them."""


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
