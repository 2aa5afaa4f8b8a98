"""The contract between the scheduler and what runs a model.

A lane serves one loaded model: text today, others by the same contract. The scheduler knows no model library and a
lane knows no wire: no ids, no events, no lines. What they share is below, and the command Structs, which are the
one place where a request's parameters, their bounds and their defaults are written down.

All calls come from one thread, the process's main one, because MLX streams belong to threads; `memory` alone may be
called from any. Why each rule is there stands beside it.
"""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from lmwire_protocol import Chat, Embed, Generate, Load, RequestError, Tokenize, Transcribe
from lmwire_protocol.events import CacheStats, Channel, FinishReason, Logprob, Quantization, Stage, Unit, Word


class InsufficientMemory(Exception):
    """Raised by `ModelRunner.add`: there is no memory for the request now, and will be when others have ended."""


class LoadCancelled(Exception):
    """Raised by `Report` when the host cancelled the load; the engine lets it pass."""


Report = Callable[[Stage, int, int | None, Unit], None]
"""`report(stage, current, total, unit)`, as in the protocol's `progress` event. Called between any two steps of a
load, however often: the caller thins it out. It is also where a load notices that it was cancelled."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is loaded, as the protocol's *model* reports it; see `lmwire_protocol.events.ModelDone`."""

    path: str
    model_type: str
    vocab_size: int
    layers: int
    hidden_size: int
    context_len: int
    weights_bytes: int
    capabilities: list[str]
    quantization: Quantization | None = None
    adapter_path: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """The model library's memory, in bytes."""

    active_bytes: int = 0
    cache_bytes: int = 0
    peak_bytes: int = 0


@dataclass(slots=True)
class AdmittedRequest:
    """A request that the lane has taken in."""

    prompt_tokens: int
    cached_tokens: int = 0
    """Of the prompt's, those that need not be processed. The lane's to set, until it begins with the prompt."""


@dataclass(slots=True)
class PrefillProgress:
    """A prompt came further."""

    key: int
    done: int
    """Prompt tokens processed so far."""
    total: int


class TokenDelta(Struct, gc=False):
    """What a step gave one choice of a request: its newest tokens, and the text that became certain with them.

    Text never ends inside a character and never holds part of a stop string or of a marker; what may become one is
    held back.
    """

    key: int
    text: str = ""
    token_ids: list[int] = []
    generated: int = 0
    """Tokens generated in this step. One more than `token_ids` for an end-of-turn token, which is not shown."""
    finish_reason: FinishReason | None = None
    """`stop`, `length`, `tool_calls` or `capacity` when the choice has ended by itself. When all of a request's
    choices have, the lane has forgotten the key."""
    stop: str | None = None
    """The stop string that ended it."""
    choice: int = 0
    """Below the request's `n`."""
    channel: Channel = "content"
    reasoning_tokens: int = 0
    """Of `generated`, those that belong to the reasoning."""
    logprobs: list[Logprob] | None = None
    """Of each of `token_ids`, when the request asks."""
    drafted: int = 0
    """Of `generated`, those that a draft model had proposed."""
    is_call_text: bool = False
    """The text is that of a tool call which is none; see `lmwire_protocol.events.Token`."""


class ToolCallDelta(Struct, gc=False):
    """A tool call of a choice, or a piece of one; see `lmwire_protocol.events.ToolCall`."""

    key: int
    index: int
    choice: int = 0
    call_id: str | None = None
    name: str | None = None
    arguments: str = ""
    complete: bool | None = None


class EmbeddingOutput(Struct, gc=False):
    """The vector of one of an `embed`'s inputs. When all inputs have one, the lane has forgotten the key."""

    key: int
    index: int
    vector: "array[float]"
    """Float32 ("f"), as it goes to the host: normalised and cut as the request asks."""
    prompt_tokens: int


class TranscriptSegment(Struct, gc=False):
    """A stretch of a recording that was written down. Its text is at most 2,000 characters, and 200 words."""

    key: int
    start_s: float
    end_s: float
    text: str
    words: list[Word] | None = None


class TranscriptionProgress(Struct, gc=False):
    """How far a `transcribe` has come; told before the first `TranscriptSegment`, and whenever more is known."""

    key: int
    done_s: float
    duration_s: float
    language: str | None = None
    """As a code like `en`."""
    is_complete: bool = False
    """The recording's end was reached; the lane has forgotten the key."""


@dataclass(slots=True)
class Failed:
    """The request, with all its choices and no other, has failed; the lane has forgotten the key."""

    key: int
    error: RequestError


RunnerEvent = (
    PrefillProgress | TokenDelta | ToolCallDelta | EmbeddingOutput | TranscriptSegment | TranscriptionProgress | Failed
)

InferenceCommand = Generate | Chat | Embed | Transcribe
"""What a lane works on step by step. Which of them it serves, its model's capabilities say."""


class Preparation(Protocol):
    """A request that is prepared in threads: its media, the tokens of its prompt, its grammar."""

    @property
    def done(self) -> bool:
        """Return whether all is there, or something has failed."""
        ...


class ModelRunner(Protocol):
    """One loaded model at work.

    A key is the scheduler's name for a request, unique among those the lane holds.
    """

    model: ModelInfo

    max_batch_size: int
    """Choices that the lane works on at once. The scheduler keeps the requests beyond, where a cancel ends them at no
    cost. A request that has more choices than that alone comes alone."""

    @property
    def batch_wait_s(self) -> float:
        """Seconds that requests which found the lane empty wait for another one, to begin together with it.

        0 where to begin one by one costs little more, and once the lane holds as many as it begins together.
        """
        ...

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        """Start whatever can take long about a request, so that no step waits for it.

        Args:
            request: To be added, or tokenized, when it is prepared.
            ready: Called from another thread when it is, or when it has failed: `add` and `tokenize` raise the error.
            size: Bytes of the request's line.

        Returns:
            None when there is nothing to prepare.
        """
        ...

    def add(
        self,
        key: int,
        request: InferenceCommand,
        seed: int,
        *,
        plain_text: bool = False,
        prepared: Preparation | None = None,
    ) -> AdmittedRequest:
        """Takes a request in. Computes nothing yet.

        Args:
            key: Its name from now on.
            request: What to answer.
            seed: The request's own, or the one that the scheduler drew for it. Choice i uses seed + i modulo 2**53.
            plain_text: All text is content: no reasoning and no calls are told apart.
            prepared: What `prepare` returned for it; done. A caller that nobody waits for may leave it out, unless
                the request refers to media.

        Raises:
            RequestError: it cannot be served (invalid_request, unsupported, context_overflow, out_of_memory).
            InsufficientMemory: not now. In neither case anything was kept.
        """
        ...

    def step(self) -> list[RunnerEvent]:
        """One bounded piece of work for the requests held: a token for each running one, a slice of a prompt.

        Nothing can interrupt it, so its length is how late a cancel may be. Called only while a request is held.
        An exception ends the worker; failures of requests are outcomes. Within one key the order is that of the
        choice's stream; between keys and between choices there is none.
        """
        ...

    def remove(self, key: int) -> Sequence[RunnerEvent]:
        """Forgets a request in whatever state, and returns what was held back of it. Other requests do not notice."""
        ...

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        """A prompt's tokens, and the text that they stand for: a conversation as its template renders it.

        Raises:
            RequestError: as from `add`.
        """
        ...

    def memory(self) -> MemoryUsage:
        """May be called from any thread."""
        ...

    def cache_stats(self) -> CacheStats | None:
        """What is cached; None when nothing ever is. May be called from any thread."""
        ...

    def clear_cache(self) -> int:
        """Drops what is cached, and returns how many bytes that freed."""
        ...

    def close(self) -> int:
        """Gives everything back and returns how many bytes that freed. No request is held."""
        ...


class ModelLoader(Protocol):
    """Opens lanes: what a model library is to the scheduler."""

    names: list[str]
    """The libraries that this installation has, for `hello`. Found without importing them."""

    features: list[str]
    """What its lanes serve that protocol 1.0 had not; see `lmwire_protocol.FEATURES`."""

    def prepare(self) -> None:
        """Imports what is slow to import. Called once, after the host has had its first answer."""
        ...

    def open(self, request: Load, report: Report, release_current_model: Callable[[], None]) -> ModelRunner:
        """Loads a model and makes it ready to answer at full speed.

        Everything that can be checked without memory for the model (its path, its files, its architecture, its adapter)
        is checked first; then `replace()` is called, which closes the present lane; then weights are read, but for
        those that the present lane had from the same folder. So a wrong path costs nobody the model that runs.

        Raises:
            RequestError: model_not_found, bad_model, unsupported, invalid_request, out_of_memory.
            LoadCancelled: from `report`.
        """
        ...

    def flush(self) -> None:
        """Waits for what is still written beside the main thread, for a few seconds at most.

        Called from another thread, before the last line: whoever reads that may start the next worker.
        """
        ...
