"""Events of `generate`, `chat` and `tokenize`."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ..limits import TOKEN_IDS
from .base import Count, Done, Event, Milliseconds

Channel = Literal["content", "reasoning"]
FinishReason = Literal["stop", "length", "tool_calls", "cancelled", "timeout", "capacity"]


class TopLogprob(Struct, omit_defaults=True):
    """A token that could have come, and its log-probability."""

    token_id: Count
    token: str
    """The token's own text, at most 256 characters, with U+FFFD where the text ends inside a character."""
    logprob: float | None = None
    """Natural logarithm of the probability that the model gave the token, before penalties, bias, temperature and
    filters. Absent if the probability is 0."""
    bytes: list[int] | None = None
    """The token's bytes, if its text alone is incomplete."""


class Logprob(TopLogprob, omit_defaults=True):
    """A generated token, and its log-probability."""

    top: list[TopLogprob] = []
    """The most probable tokens at this place, the most probable first: as many as `top_logprobs` asks for."""
    text: str | None = None
    """The part of the token's text that the answer contains, if it is not the whole text."""


class Token(Event, tag="token", kw_only=True, gc=False):
    """Generated tokens, with the text that became certain with them. The text can be empty."""

    id: str
    token: str
    token_ids: Annotated[list[Count], Meta(max_length=TOKEN_IDS)]
    choice: Count = 0
    """The index of the answer, from 0 to `n` - 1."""
    channel: Channel = "content"
    """`reasoning`: the text is the model's reasoning, not its answer."""
    call: bool = False
    """True if the text is that of a tool call that was cut off, or whose `tool_call` events are void."""
    logprobs: list[Logprob] | None = None
    """One for each of `token_ids`, if the request asks for them."""
    prompt_logprobs: list[Logprob] | None = None
    """The next tokens of the prompt, if the request asks for them. Such an event has no text and no token ids."""


class ToolCall(Event, tag="tool_call", kw_only=True):
    """A tool call, or a part of one. All its events together have one name, and their arguments joined are JSON."""

    id: str
    choice: Count = 0
    index: Count
    """The index of the call within its answer, in order."""
    call_id: str | None = None
    """The call's own id, in its first event."""
    name: str | None = None
    """The function's name, in the call's first event."""
    arguments: str = ""
    """The next part of the arguments' JSON text."""
    complete: bool | None = None
    """In the call's last event: true if the call is whole. If false, discard the call: its raw text follows as token
    events."""


class Usage(Struct, omit_defaults=True):
    """The tokens that a request used."""

    prompt_tokens: Count
    cached_tokens: Count
    """Tokens of the prompt that came from a cache and were not processed again."""
    completion_tokens: Count
    """Tokens of all answers together. End-of-turn tokens count, although they have no token event."""
    reasoning_tokens: Count = 0
    """Tokens of the completion that belong to the reasoning channel, its markers included. Absent if 0."""
    draft_accepted: Count = 0
    """Tokens of the completion that the draft model proposed. Absent if 0."""


class CacheMiss(Struct, omit_defaults=True):
    """The place at which a prompt ceased to be known to the cache."""

    known_tokens: Count
    """Tokens with which the prompt begins like a cached one: the index of the first one that differs. It may exceed
    `cached_tokens`, since few tokens are computed as quickly, and some models continue from checkpoints only."""
    token: str | None = None
    """The text of the prompt's token there. Absent: it does not differ; what is cached ends there."""


class Timings(Struct, kw_only=True, omit_defaults=True):
    """The times of a request, in milliseconds. A time is absent if the request ended before it."""

    queued_ms: Milliseconds
    """From the request's line to the engine's start on it."""
    prefill_ms: Milliseconds | None = None
    """From the start to the first token."""
    first_token_ms: Milliseconds | None = None
    """From the request's line to the first token."""
    total_ms: Milliseconds
    """From the request's line to its end."""
    prompt_tps: float | None = None
    """Prompt tokens processed per second."""
    decode_tps: float | None = None
    """Tokens generated per second, from the first token on."""


class Choice(Struct, omit_defaults=True):
    """The end of one of several answers."""

    finish_reason: FinishReason
    completion_tokens: Count
    """Tokens of this answer, the end-of-turn token included."""
    stop: str | None = None
    """The stop string that ended it."""


class ResultDone(Done, tag="done", kw_only=True):
    """The reply to `generate` and `chat`."""

    finish_reason: FinishReason
    """`stop`: the model ended its turn, or a stop string came. `length`: max_tokens was reached, or the context is
    full. `tool_calls`: the model ended its turn with whole tool calls. `timeout`: timeout_ms passed. `capacity`: no
    memory remained to go on."""
    stop: str | None = None
    """The stop string that ended it."""
    seed: Count
    """The seed in use."""
    usage: Usage
    timings: Timings
    choices: list[Choice] | None = None
    """With n above 1: the end of each answer. `finish_reason` and `stop` above are then those of the first."""
    cache_miss: CacheMiss | None = None
    """With `cache_report`, if more than the prompt's last token was computed, and the request may use the cache."""


class TokenizeDone(Done, tag="done", kw_only=True):
    """The reply to `tokenize`."""

    count: Count
    """Number of tokens."""
