"""Every event of protocol 1. The field `event` tells them apart; `done` has a form for each command.

A field that a line lacks is None here: events leave absent fields out, and readers ignore fields they do not know.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from .limits import TOKEN_IDS

Count = Annotated[int, Meta(ge=0)]
Milliseconds = Annotated[float, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]
"""Within a recording."""


class Event(Struct, omit_defaults=True, tag_field="event"):
    """What all events share."""


Stage = Literal["resolve", "download", "read", "warm_up", "prefill", "transcribe"]
Unit = Literal["bytes", "tokens", "steps", "seconds"]


class Progress(Event, tag="progress", kw_only=True):
    """How far a long step has come; at most ten a second for one id."""

    id: str
    stage: Stage
    current: Count
    total: Count | None = None
    """Absent when it is not known."""
    unit: Unit


class TopLogprob(Struct, omit_defaults=True):
    """A token that could have come, and how probable it was."""

    token_id: Count
    token: str
    """The token's own text, at most 256 characters of it; U+FFFD where it ends inside a character."""
    logprob: float | None = None
    """Natural logarithm of the probability that the model gave the token, before penalties, bias, temperature and
    filters; absent for none at all."""
    bytes: list[int] | None = None
    """The token's bytes, where its text alone is incomplete."""


class Logprob(TopLogprob, omit_defaults=True):
    """A generated token, and how probable it was."""

    top: list[TopLogprob] = []
    """The most probable tokens at its place, the most probable first: as many as `top_logprobs` asks for."""
    text: str | None = None
    """What of its text the answer has, where that is not all of it."""


Channel = Literal["content", "reasoning"]


class Token(Event, tag="token", kw_only=True, gc=False):
    """Generated tokens, with the text that became certain with them (which can be empty)."""

    id: str
    token: str
    token_ids: Annotated[list[Count], Meta(max_length=TOKEN_IDS)]
    choice: Count = 0
    """Which of `n` answers it belongs to."""
    channel: Channel = "content"
    """`reasoning`: what the model thinks before it answers."""
    call: bool = False
    """The text is that of a tool call which is cut off, or of which `tool_call` events were sent in vain."""
    logprobs: list[Logprob] | None = None
    """One for each of token_ids, when asked for."""


class ToolCall(Event, tag="tool_call", kw_only=True):
    """A tool call, or a piece of one. All its events together have one name, and their arguments joined are JSON."""

    id: str
    choice: Count = 0
    index: Count
    """Which of the answer's calls it is, in order."""
    call_id: str | None = None
    """The call's own id; in its first event."""
    name: str | None = None
    """The function's name; in its first event."""
    arguments: str = ""
    """The next piece of the arguments' JSON text."""
    complete: bool | None = None
    """In its last event: whether the call is whole. If not, discard it: its raw text follows as token events."""


class Embedding(Event, tag="embedding", kw_only=True):
    """An input's vector, or a piece of one; it is whole when offset and the piece's numbers come to dims."""

    id: str
    index: Count
    """Which of `input` it belongs to."""
    offset: Count = 0
    """Where in the vector the piece begins."""
    dims: Count
    """The numbers of the whole vector."""
    embedding: str | list[float]
    """Base64 of little-endian float32, or numbers; at most 2,048 of them."""


class Word(Struct):
    """A word that was said."""

    text: str
    """As it stands in the segment's text, white space included."""
    start_s: Seconds
    end_s: Seconds


class Segment(Event, tag="segment", kw_only=True):
    """A stretch of a recording, and what is said in it. The texts of all, joined, are the transcript."""

    id: str
    index: Count
    start_s: Seconds
    end_s: Seconds
    text: str
    words: list[Word] | None = None
    """When asked for."""


class Error(Event, tag="error", kw_only=True):
    """A request's failure, and its terminal when it has an id."""

    id: str | None = None
    error: str
    """A sentence for a person, at most 4 KiB."""
    code: str
    retryable: bool
    """Whether the same request can succeed later."""
    field: str | None = None
    """The path of the field at fault, as `messages[2].content[0]`."""
    bad_id: str | None = None
    """An id that the line names and that is not ended by this error."""
    protocols: list[int] | None = None
    """With unsupported_protocol: the versions that the worker speaks."""
    loaded: bool | None = None
    """With a failed load: whether a model is loaded now, which is then the one of before."""


class Done(Event, tag="done"):
    """A request's success, and its terminal. Each command has its own form."""

    id: str


class Limits(Struct):
    """What the worker accepts at most."""

    line_in_bytes: int
    line_out_bytes: int
    requests: int
    """Unfinished requests."""
    queued_bytes: int
    """The lines of unfinished requests together."""


class HelloDone(Done, tag="done"):
    """The reply to `hello`."""

    protocol: int
    """The version in use: the highest that both speak."""
    worker: str
    """Name and version."""
    pid: int
    engines: list[str]
    """The model libraries that this installation can use."""
    features: list[str]
    """Every command, field and value newer than 1.0 that this worker serves, as `chat.foo`."""
    limits: Limits


class Quantization(Struct):
    """How a model's weights are quantised."""

    bits: int
    group_size: int


class ModelDone(Done, tag="done"):
    """The reply to `load` and `info`: the loaded model."""

    path: str
    """The folder that it was loaded from."""
    model_type: str
    vocab_size: int
    layers: int
    hidden_size: int
    context_len: int
    """Tokens of prompt and answer together, at most."""
    weights_bytes: int
    capabilities: list[str]
    """The commands that this model can serve, and `images` and `sounds` where it takes those as well."""
    quantization: Quantization | None = None
    """Absent for a model that is not quantised."""
    adapter_path: str | None = None
    """Of the adapter that was loaded with it."""
    batch_size: Count | None = None
    """Answers that it works on at once, at most; absent when the worker does not say."""


class UnloadDone(Done, tag="done"):
    """The reply to `unload`."""

    freed_bytes: Count
    """0 when no model was loaded."""


class Usage(Struct, omit_defaults=True):
    """What a request used, in tokens."""

    prompt_tokens: Count
    cached_tokens: Count
    """Of the prompt's, those that a cache saved from being processed again."""
    completion_tokens: Count
    """Of all answers together, the end-of-turn tokens included, which have no token event."""
    reasoning_tokens: Count = 0
    """Of the completion's, those of the reasoning channel, its markers included; absent for none."""
    draft_accepted: Count = 0
    """Of the completion's, those that the draft model had proposed; absent for none."""


class Timings(Struct, kw_only=True, omit_defaults=True):
    """Where a request's time went. Milliseconds; a figure is absent when the request ended before it."""

    queued_ms: Milliseconds
    """From reading its line to the engine's start on it."""
    prefill_ms: Milliseconds | None = None
    """From the start to the first token."""
    first_token_ms: Milliseconds | None = None
    """From reading its line to the first token."""
    total_ms: Milliseconds
    """From reading its line to its end."""
    prompt_tps: float | None = None
    """Prompt tokens processed a second."""
    decode_tps: float | None = None
    """Tokens generated a second, from the first token on."""


FinishReason = Literal["stop", "length", "tool_calls", "cancelled", "timeout", "capacity"]


class Choice(Struct, omit_defaults=True):
    """How one of several answers ended."""

    finish_reason: FinishReason
    completion_tokens: Count
    """The end-of-turn token included."""
    stop: str | None = None
    """The stop string that ended it."""


class ResultDone(Done, tag="done", kw_only=True):
    """The reply to `generate` and `chat`."""

    finish_reason: FinishReason
    """`stop`: the model ended its turn, or a stop string came. `length`: max_tokens, or the context is full.
    `tool_calls`: it ended its turn with whole tool calls. `timeout`: timeout_ms was over. `capacity`: there was no
    memory left for it to go on."""
    stop: str | None = None
    """The stop string that ended it."""
    seed: Count
    """The seed in use."""
    usage: Usage
    timings: Timings
    choices: list[Choice] | None = None
    """With n above 1: how each answer ended. finish_reason and stop are then those of the first."""


class TokenizeDone(Done, tag="done"):
    """The reply to `tokenize`."""

    count: Count
    """Tokens."""


class EmbedDone(Done, tag="done"):
    """The reply to `embed`."""

    count: Count
    """Vectors."""
    dimensions: Count
    """The numbers of each."""
    usage: Usage


class TranscribeDone(Done, tag="done"):
    """The reply to `transcribe`."""

    finish_reason: Literal["stop", "cancelled", "timeout"]
    """`stop`: the recording's end was reached."""
    duration_s: Seconds
    """Of the recording; 0 when it ended before that was known."""
    timings: Timings
    language: str | None = None
    """What is spoken, as a code like `en`; absent when the model does not tell."""


class CacheDone(Done, tag="done"):
    """The reply to `cache`."""

    freed_bytes: Count


class CancelDone(Done, tag="done"):
    """The reply to `cancel`. Comes before the terminals that it causes."""

    matched: Count
    """Requests found; 0 for one that is unknown or has ended."""


State = Literal["idle", "loading", "running", "paused", "draining"]


class PingDone(Done, tag="done", kw_only=True):
    """The reply to `ping`."""

    state: State
    """`paused`: the engine waits for the host to read."""
    step_age_ms: Milliseconds | None = None
    """Since the engine's last progress; absent while it computes nothing."""
    active: Count
    """Requests that the engine works on."""
    queued: Count
    """Requests that wait for it."""


class RequestStats(Struct):
    """Requests since the start, `hello`, `cancel`, `ping`, `stats` and `quit` not counted."""

    accepted: Count
    active: Count
    queued: Count
    done: Count
    errors: Count
    cancelled: Count


class TokenStats(Struct):
    """Tokens since the start."""

    prompt: Count
    completion: Count


class MemoryStats(Struct):
    """The model library's memory, in bytes."""

    active_bytes: Count
    """In use."""
    cache_bytes: Count
    """Freed, and kept for reuse."""
    peak_bytes: Count
    """The most that was in use."""


class CacheStats(Struct):
    """What is kept of prompts and answers, and what it was good for since the model was loaded."""

    bytes: Count
    """Memory that it takes."""
    budget_bytes: Count
    """Memory that it takes at most."""
    entries: Count
    """Pieces of prompts and answers."""
    hits: Count
    """Requests that began with something cached."""
    misses: Count
    """Requests that looked for something, and began with nothing."""
    saved_tokens: Count
    """Prompt tokens that were not processed again."""
    evictions: Count
    """Entries that were given up for others, or for requests."""
    mismatches: Count
    """Entries that a check found to differ from what the model computes anew; they were dropped."""


class StatsDone(Done, tag="done"):
    """The reply to `stats`."""

    uptime_ms: Milliseconds
    requests: RequestStats
    tokens: TokenStats
    memory: MemoryStats
    outbox_bytes: Count
    """Output that waits for the host to read."""
    cache: CacheStats | None = None
    """Absent without a model, and for one that caches nothing."""


class QuitDone(Done, tag="done"):
    """The reply to `quit`, and the worker's last line."""


EVENTS: Final[dict[str, type[Event]]] = {
    "progress": Progress,
    "token": Token,
    "tool_call": ToolCall,
    "embedding": Embedding,
    "segment": Segment,
    "error": Error,
    "done": Done,
}
"""Every event by the value of `event`."""
