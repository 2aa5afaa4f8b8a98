"""Events of `hello`, `cancel`, `ping`, `stats` and `quit`."""

from typing import Literal

from msgspec import Struct

from .base import Count, Done, Milliseconds

State = Literal["idle", "loading", "running", "paused", "draining"]


class Limits(Struct):
    """The limits of the worker."""

    line_in_bytes: int
    line_out_bytes: int
    requests: int
    """Maximum number of unfinished requests."""
    queued_bytes: int
    """Maximum size of the lines of all unfinished requests together."""


class RankGroup(Struct, frozen=True):
    """The processes that hold each model together."""

    size: Count
    """Number of processes."""
    backend: str
    """MLX's name of what connects them, such as `ring` or `nccl`."""


class HelloDone(Done, tag="done", kw_only=True):
    """The reply to `hello`."""

    protocol: int
    """The version in use: the highest that both sides speak."""
    worker: str
    """Name and version."""
    pid: int
    engines: list[str]
    """The model libraries that this installation can use."""
    features: list[str]
    """Every command, field and value newer than 1.0 that this worker serves, such as `chat.foo`."""
    limits: Limits
    ranks: RankGroup | None = None
    """The processes that hold each model together. Absent if one does."""


class CancelDone(Done, tag="done", kw_only=True):
    """The reply to `cancel`. It comes before the terminals that it causes."""

    matched: Count
    """Number of requests found; 0 if the target is unknown or has ended."""


class PingDone(Done, tag="done", kw_only=True):
    """The reply to `ping`."""

    state: State
    """`paused`: the engine waits for the host to read."""
    step_age_ms: Milliseconds | None = None
    """Time since the engine's last progress. Absent while it computes nothing."""
    active: Count
    """Number of requests that the engine works on."""
    queued: Count
    """Number of requests that wait for the engine."""


class RequestStats(Struct):
    """Number of requests since the start. `hello`, `cancel`, `ping`, `stats` and `quit` do not count."""

    accepted: Count
    active: Count
    queued: Count
    done: Count
    errors: Count
    cancelled: Count


class TokenStats(Struct):
    """Number of tokens since the start."""

    prompt: Count
    completion: Count


class MemoryStats(Struct):
    """The model library's memory, in bytes."""

    active_bytes: Count
    """Memory in use."""
    cache_bytes: Count
    """Memory that was freed and is kept for reuse."""
    peak_bytes: Count
    """Maximum memory that was in use."""


class CacheStats(Struct):
    """The cached prompts and answers, and their use since the model was loaded."""

    bytes: Count
    """Memory in use."""
    budget_bytes: Count
    """Maximum memory."""
    entries: Count
    """Number of cached parts of prompts and answers."""
    hits: Count
    """Number of requests that started with something cached."""
    misses: Count
    """Number of requests that searched the cache and found nothing."""
    saved_tokens: Count
    """Prompt tokens that were not processed again."""
    evictions: Count
    """Number of entries that were dropped for others, or for requests."""
    mismatches: Count
    """Number of entries that a check found to differ from what the model computes anew. They were dropped."""


class StatsDone(Done, tag="done", kw_only=True):
    """The reply to `stats`."""

    uptime_ms: Milliseconds
    requests: RequestStats
    tokens: TokenStats
    memory: MemoryStats
    outbox_bytes: Count
    """Output that waits for the host to read it."""
    cache: CacheStats | None = None
    """Absent without a model, and for a model that caches nothing."""


class QuitDone(Done, tag="done", kw_only=True):
    """The reply to `quit`, and the worker's last line."""
