"""The contract between the scheduler and a model runner.

A runner serves one loaded model. The scheduler knows no model library. A runner does not know the wire: ids, events
and lines. They share the types below and the command Structs, which alone define a request's parameters with their
bounds and defaults.

All calls come from the process's main thread, because MLX streams belong to threads. Methods that any thread may call
say so.
"""

from array import array
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Literal, Protocol

from msgspec import Struct

from lmwire_protocol import Chat, Embed, Generate, Load, RequestError, Speak, Tokenize, Transcribe
from lmwire_protocol.events import (
    CacheMiss,
    CacheStats,
    Channel,
    FinishReason,
    Logprob,
    Quantization,
    RankInfo,
    SamplingDefaults,
    Stage,
    Unit,
    Word,
)

from ..process.memory_pressure import MemoryPressure


class InsufficientMemory(Exception):
    """Raised by `ModelRunner.add`: the request fits into memory only after others have ended."""


class LoadCancelled(Exception):
    """Raised by `Report` when the host cancels the load; the loader does not catch it."""


Report = Callable[[Stage, int, int | None, Unit], None]
"""`report(stage, current, total, unit)`, as in the protocol's `progress` event. A load calls it between any two of its
steps; the scheduler limits the number of events. A cancelled load ends in this call."""


class ModelInfo(Struct, frozen=True):
    """The loaded model, with the fields of `lmwire_protocol.events.ModelDone`."""

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
    chat_template_name: str | None = None
    tool_format: str | None = None
    tool_format_note: str | None = None
    sampling_defaults: SamplingDefaults | None = None
    reasoning_efforts: list[str] | None = None
    ranks: RankInfo | None = None
    tokenizer_vocab_size: int | None = None
    """Tokens of the tokenizer without added ones, for bridge sessions alone; None if unknown."""


class MemoryUsage(Struct, frozen=True):
    """The model library's memory, in bytes."""

    active_bytes: int = 0
    cache_bytes: int = 0
    peak_bytes: int = 0


class Status(Enum):
    """Place of a request on its way, and of each of its sequences: the choices that a runner computes."""

    PREPARING = "preparing"
    """Threads read its media, make its prompt and compile its grammar."""
    WAITING = "waiting"
    """It waits for its turn, for memory, or for a part of its prompt: from the disk, or from another's prefill."""
    PREFILLING = "prefilling"
    DECODING = "decoding"
    """It is being answered, whatever the model does for that."""
    RESTARTING = "restarting"
    """After a failed step: it is outside of the batch, and will be computed again from its tokens."""
    ENDED = "ended"


class AdmittedRequest(Struct):
    """A request that a runner has accepted."""

    prompt_tokens: int
    cached_tokens: int = 0
    """Prompt tokens from the prefix cache. The runner may set it until prefill starts."""
    cache_miss: CacheMiss | None = None
    """Why not all of them came from there, if the request asks for that. The runner may set it until prefill starts."""


class PrefillProgress(Struct):
    """The progress of a prompt's prefill."""

    key: int
    done: int
    """Prompt tokens processed so far."""
    total: int


class TokenDelta(Struct, gc=False):
    """A step's output for one choice of a request: its newest tokens, and the text that is now certain.

    Text never ends inside a character and never holds part of a stop string or of a marker. Text that may become one is
    delayed.
    """

    key: int
    text: str = ""
    token_ids: list[int] = []
    generated: int = 0
    """Tokens generated in this step. An eos token counts here and is missing in `token_ids`."""
    finish_reason: FinishReason | None = None
    """`stop`, `length`, `tool_calls` or `capacity` if the choice has ended by itself. After the last choice's, the
    runner no longer has the key."""
    stop: str | None = None
    """The stop string that ended the choice."""
    choice: int = 0
    """Index of the choice, from 0 to the request's `n` - 1."""
    channel: Channel = "content"
    reasoning_tokens: int = 0
    """Tokens of `generated` that belong to the reasoning."""
    logprobs: list[Logprob] | None = None
    """Log-probabilities of `token_ids`, if the request asks for them."""
    drafted: int = 0
    """Tokens of `generated` that the draft model proposed."""
    is_call_text: bool = False
    """The text belongs to an invalid tool call; see `lmwire_protocol.events.Token`."""
    prompt_logprobs: list[Logprob] | None = None
    """Log-probabilities of the next tokens of the prompt, if the request asks for them."""
    eos_token_id: int | None = None
    """The eos token that ended the choice, if one did."""


class ToolCallDelta(Struct, gc=False):
    """A tool call of a choice, or a part of it; see `lmwire_protocol.events.ToolCall`."""

    key: int
    index: int
    choice: int = 0
    call_id: str | None = None
    name: str | None = None
    arguments: str = ""
    complete: bool | None = None


class EmbeddingOutput(Struct, gc=False):
    """The vector of one input of an `embed`. After the last one, the runner no longer has the key."""

    key: int
    index: int
    vector: "array[float]"
    """Float32 ("f"), normalized and shortened as the request asks."""
    prompt_tokens: int


class TranscriptSegment(Struct, gc=False):
    """A segment of a transcription. Its text has at most 2,000 characters and 200 words."""

    key: int
    start_s: float
    end_s: float
    text: str
    words: list[Word] | None = None


class TranscriptionProgress(Struct, gc=False):
    """The progress of a `transcribe`: one before the first `TranscriptSegment`, then one for each change."""

    key: int
    done_s: float
    duration_s: float
    language: str | None = None
    """Language code, such as `en`."""
    is_complete: bool = False
    """The whole recording is transcribed; the runner no longer has the key."""


class SpeechOutput(Struct, gc=False):
    """A part of the speech of a `speak`. After the last one, the runner no longer has the key."""

    key: int
    samples: bytes
    """Little-endian, 16 bits each, one channel. May be empty."""
    sample_rate: int
    finish_reason: Literal["stop", "length"] | None = None
    """Why the speech ends with this part; None if it goes on."""


class Failed(Struct):
    """The failure of one request with all its choices. The runner no longer has the key."""

    key: int
    error: RequestError


OutputEvent = TokenDelta | ToolCallDelta | EmbeddingOutput | TranscriptSegment | TranscriptionProgress | SpeechOutput
"""A runner's event that changes a request's state."""
RunnerEvent = PrefillProgress | OutputEvent | Failed

InferenceCommand = Generate | Chat | Embed | Transcribe | Speak
"""A command that a runner serves step by step. The model's capabilities list the commands that it serves."""


class Preparation(Protocol):
    """A request's preparation in threads: its media, the tokens of its prompt, its grammar."""

    @property
    def done(self) -> bool:
        """Return whether the preparation is complete or has failed."""
        ...

    def cancel(self) -> None:
        """End the work: its request was cancelled. Any thread may call it; it does not wait."""
        ...


class PreparedPrompt(Struct, frozen=True):
    """A prompt that one rank has rendered and tokenized for all: limits of time may end the same work elsewhere."""

    tokens: bytes
    """The token ids after truncation, int32."""
    opening: str
    """The end of the text that belongs to the assistant's turn."""
    effort_budget: int | None
    """The reasoning budget that stands for an effort, in tokens; None without one."""


class ModelRunner(Protocol):
    """One loaded model and the requests that it serves.

    A key is the scheduler's name for a request, unique among the requests of the runner.
    """

    model: ModelInfo

    max_batch_size: int
    """Maximum number of choices computed at once. The scheduler queues further requests, where a cancel ends them at no
    cost. It starts a request with more choices alone."""

    @property
    def batch_wait_s(self) -> float:
        """Seconds that the first requests of an empty runner wait for another, to start together.

        0 if it costs little to start them one by one, and once the runner has as many as it starts together.
        """
        ...

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        """Start the slow work of a request in threads, so that no step waits for it.

        Args:
            request: The request, to be added or tokenized later.
            ready: Called from another thread at the end. `add` and `tokenize` raise an error of the preparation.
            size: Size of the request's line, in bytes.

        Returns:
            The preparation, or None if the request needs none.
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
        """Accept a request. It computes nothing yet.

        Args:
            key: The request's name from now on.
            request: The request.
            seed: The request's seed, or one that the scheduler drew. Choice i uses seed + i modulo 2**53.
            plain_text: All text is content: reasoning and tool calls are not separated.
            prepared: The complete preparation of the request. Without one, `add` does the work itself; media need
                a preparation.

        Raises:
            RequestError: The request cannot be served (invalid_request, unsupported, context_overflow, out_of_memory).
            InsufficientMemory: The memory does not suffice now. After either error the runner does not have the key.
        """
        ...

    def step(self) -> list[RunnerEvent]:
        """Do one bounded step for the requests: decode a token for each row, or prefill a chunk of a prompt.

        Nothing interrupts a step, so its duration limits how soon a cancel takes effect. The runner has at least one
        request. An exception ends the worker; a request's failure is an event. The events of one choice are in order;
        those of different choices and keys are in any order.
        """
        ...

    def remove(self, key: int) -> Sequence[RunnerEvent]:
        """Drop a request in any state, and return its delayed text. Other requests are not affected."""
        ...

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        """Return a prompt's tokens and their text. A conversation is rendered by its chat template.

        Args:
            request: The request.
            prepared: The complete preparation of the request; see `add`.

        Raises:
            RequestError: As from `add`.
        """
        ...

    def memory(self) -> MemoryUsage:
        """Return the memory in use. Any thread may call it."""
        ...

    def cache_stats(self) -> CacheStats | None:
        """Return the statistics of the prefix cache; None without one. Any thread may call it."""
        ...

    def clear_cache(self) -> int:
        """Empty the prefix cache, and return the bytes freed."""
        ...

    def release_caches(self) -> None:
        """Free what can be computed again, but not what requests have pinned. Requests go on."""
        ...

    def close(self) -> int:
        """Release all memory, and return the bytes freed. The runner has no request."""
        ...


class RankRunner(ModelRunner, Protocol):
    """The runner of a rank's part of a model."""

    def prepare(
        self,
        request: InferenceCommand | Tokenize,
        ready: Callable[[], None],
        size: int = 0,
        *,
        share: Callable[[PreparedPrompt], None] | None = None,
        prompt: PreparedPrompt | None = None,
    ) -> Preparation | None:
        """Prepare a request; see `ModelRunner.prepare`.

        Args:
            request: The request.
            ready: Called from another thread when it is done.
            size: Size of the request's line, in bytes.
            share: Called from another thread, before `ready`, with the prompt of a request that has been prepared.
            prompt: What rank 0 has shared; None to render and tokenize.
        """
        ...


class ModelLoader(Protocol):
    """Opens models: the scheduler's view of a model library."""

    names: list[str]
    """The installed model libraries, for `hello`. They are found without an import."""

    features: list[str]
    """Features beyond protocol 1.0; see `lmwire_protocol.FEATURES`."""

    def read_pressure(self) -> MemoryPressure:
        """Return the pressure on the memory that the models are in. Any thread may call it."""
        ...

    def prepare(self) -> None:
        """Do the slow imports. Called once, after the first reply to the host."""
        ...

    def open(self, request: Load, report: Report, release_current_model: Callable[[], None]) -> ModelRunner:
        """Load a model and warm it up.

        It first checks the path, the files, the architecture and the adapter. Then it calls `release_current_model`,
        which closes the present runner, and reads the weights; weights of the same folder are reused. So a failed check
        does not cost the host its present model.

        Args:
            request: The load.
            report: Takes the progress.
            release_current_model: Closes the present runner.

        Raises:
            RequestError: model_not_found, bad_model, unsupported, invalid_request, out_of_memory.
            LoadCancelled: From `report`.
        """
        ...

    def model_closed(self) -> None:
        """Note that the runner of the last load is closed, and that no other has replaced it yet."""
        ...

    def flush(self) -> None:
        """Wait until other threads have written their files, for a few seconds at most.

        Called from another thread, before the last line: a host that reads that line may start the next worker.
        """
        ...
