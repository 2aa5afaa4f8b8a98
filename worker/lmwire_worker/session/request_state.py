"""Requests in flight: what all of them have, and the state of each kind."""

import math
import os
from collections.abc import Callable
from typing import ClassVar, Final, Literal, Protocol

from msgspec.structs import replace

from lmwire_protocol import Command, Embed, Generation, RequestError, Speak, Transcribe
from lmwire_protocol.events import (
    Choice,
    Done,
    EmbedDone,
    Error,
    FinishReason,
    Progress,
    ResultDone,
    SamplingDefaults,
    SpeakDone,
    Timings,
    TranscribeDone,
    Usage,
)
from lmwire_protocol.limits import MAX_INT

from ..engine.interface import (
    AdmittedRequest,
    EmbeddingOutput,
    OutputEvent,
    Preparation,
    SpeechOutput,
    Status,
    TokenDelta,
    ToolCallDelta,
    TranscriptionProgress,
    TranscriptSegment,
)
from .output_queue import OutputQueue


class EventWriter(Protocol):
    """Writes a request's events. Version 1 and the bridge differ in nothing else."""

    is_serial: bool
    """One request at a time, each after the one before: the bridge."""
    plain_text: bool
    """All generated text is content: the bridge has neither reasoning nor tool calls."""

    def write(self, output: OutputQueue, request: "Request", event: OutputEvent) -> None:
        """Queue the lines of an event, if it has any.

        Args:
            output: The queue of output.
            request: The request, with the event applied to its state.
            event: What the runner reported.
        """
        ...

    def progress(self, event: Progress) -> bytes:
        """Return the line of a progress event; empty if the session has none."""
        ...

    def terminal(self, request: "Request", event: Done | Error) -> bytes:
        """Return the request's last line; empty if the session has none.

        Args:
            request: The request that ends.
            event: Its terminal.
        """
        ...


_SAMPLE_BYTES: Final = 2

CancelReason = Literal["cancelled", "timeout"]
"""Why a request ends early."""


class RequestState(Protocol):
    """The progress of one kind of request. The registry's lock guards it."""

    has_partial_result: ClassVar[bool]
    """A cancelled request ends with what it has so far, not with an error."""

    @property
    def is_complete(self) -> bool:
        """Return whether the request has come to its own end."""
        ...

    @property
    def unfinished_choices(self) -> int:
        """Return the number of choices that still need a row of the batch."""
        ...

    def apply(self, event: OutputEvent) -> bool:
        """Take an event in, and return whether it completes the request."""
        ...

    def done(self, request: "Request") -> Done:
        """Return the `done` of the request as it stands now."""
        ...


class CommandState:
    """A command that the engine serves at once, such as `load`."""

    __slots__ = ()
    has_partial_result: ClassVar[bool] = False
    is_complete = False
    unfinished_choices = 1

    def apply(self, event: OutputEvent) -> bool:
        """Take an event in, and return whether it completes the request."""
        return False

    def done(self, request: "Request") -> Done:
        """Raise an error: the scheduler makes the `done` of such a command."""
        raise AssertionError("the scheduler makes the done of such a command")


class ChoiceState:
    """One choice of a generation: what was delivered, and how it ended."""

    __slots__ = ("accepted_draft_tokens", "completion_tokens", "finish_reason", "reasoning_tokens", "stop")

    def __init__(self) -> None:
        self.completion_tokens = 0
        self.reasoning_tokens = 0
        self.accepted_draft_tokens = 0
        self.finish_reason: FinishReason | None = None
        self.stop: str | None = None


class GenerationState:
    """A `generate` or `chat`.

    Args:
        choices: The number of choices.
    """

    __slots__ = ("choices",)
    has_partial_result: ClassVar[bool] = True

    def __init__(self, choices: int) -> None:
        self.choices = [ChoiceState() for _ in range(choices)]

    @property
    def is_complete(self) -> bool:
        """Return whether the request has come to its own end."""
        return all(choice.finish_reason is not None for choice in self.choices)

    @property
    def unfinished_choices(self) -> int:
        """Return the number of choices that have not ended."""
        return sum(choice.finish_reason is None for choice in self.choices)

    @property
    def completion_tokens(self) -> int:
        """Return the tokens generated for all choices."""
        return sum(choice.completion_tokens for choice in self.choices)

    def apply(self, event: OutputEvent) -> bool:
        """Take an event in, and return whether it completes the request."""
        if not isinstance(event, TokenDelta):
            assert isinstance(event, ToolCallDelta)
            return False
        choice = self.choices[event.choice]
        choice.completion_tokens += event.generated
        choice.reasoning_tokens += event.reasoning_tokens
        choice.accepted_draft_tokens += event.drafted
        if event.finish_reason is None:
            return False
        choice.finish_reason, choice.stop = event.finish_reason, event.stop
        return self.is_complete

    def done(self, request: "Request") -> ResultDone:
        """Return the `done` of the request as it stands now."""
        choices = self.choices
        unfinished = request.cancel_reason or "cancelled"
        ends = [Choice(choice.finish_reason or unfinished, choice.completion_tokens, choice.stop) for choice in choices]
        return ResultDone(
            id=request.id,
            finish_reason=ends[0].finish_reason,
            stop=ends[0].stop,
            seed=request.seed,
            usage=Usage(
                prompt_tokens=request.admitted.prompt_tokens,
                cached_tokens=request.admitted.cached_tokens,
                completion_tokens=self.completion_tokens,
                reasoning_tokens=sum(choice.reasoning_tokens for choice in choices),
                draft_accepted=sum(choice.accepted_draft_tokens for choice in choices),
            ),
            timings=request.timings(self.completion_tokens),
            choices=ends if len(ends) > 1 else None,
            cache_miss=request.admitted.cache_miss,
        )


class EmbeddingState:
    """An `embed`.

    Args:
        inputs: The number of inputs.
    """

    __slots__ = ("_delivered", "_dimensions", "_inputs", "_prompt_tokens")
    has_partial_result: ClassVar[bool] = False
    unfinished_choices = 1

    def __init__(self, inputs: int) -> None:
        self._inputs = inputs
        self._delivered = 0
        self._dimensions = 0
        self._prompt_tokens = 0

    @property
    def is_complete(self) -> bool:
        """Return whether the request has come to its own end."""
        return self._delivered == self._inputs

    def apply(self, event: OutputEvent) -> bool:
        """Take an event in, and return whether it completes the request."""
        assert isinstance(event, EmbeddingOutput)
        self._delivered += 1
        self._dimensions = len(event.vector)
        self._prompt_tokens += event.prompt_tokens
        return self.is_complete

    def done(self, request: "Request") -> EmbedDone:
        """Return the `done` of the request as it stands now."""
        prompt_tokens = request.admitted.prompt_tokens + self._prompt_tokens
        usage = Usage(prompt_tokens, cached_tokens=0, completion_tokens=0)
        return EmbedDone(id=request.id, count=self._delivered, dimensions=self._dimensions, usage=usage)


class TranscriptionState:
    """A `transcribe`."""

    __slots__ = ("_duration_s", "_language", "is_complete", "segments")
    has_partial_result: ClassVar[bool] = True
    unfinished_choices = 1

    def __init__(self) -> None:
        self.is_complete = False
        self.segments = 0
        """Segments so far."""
        self._duration_s = 0.0
        self._language: str | None = None

    def apply(self, event: OutputEvent) -> bool:
        """Take an event in, and return whether it completes the request."""
        if isinstance(event, TranscriptSegment):
            self.segments += 1
            return False
        assert isinstance(event, TranscriptionProgress)
        self._duration_s = event.duration_s
        self._language = event.language or self._language
        self.is_complete = event.is_complete
        return event.is_complete

    def done(self, request: "Request") -> TranscribeDone:
        """Return the `done` of the request as it stands now."""
        reason = "stop" if self.is_complete else request.cancel_reason or "cancelled"
        return TranscribeDone(
            id=request.id,
            finish_reason=reason,
            duration_s=self._duration_s,
            timings=request.timings(0),
            language=self._language,
        )


class SpeechState:
    """A `speak`."""

    __slots__ = ("_finish_reason", "_seconds", "parts")
    has_partial_result: ClassVar[bool] = True
    unfinished_choices = 1

    def __init__(self) -> None:
        self.parts = 0
        """Parts of the speech so far."""
        self._seconds = 0.0
        self._finish_reason: Literal["stop", "length"] | None = None

    @property
    def is_complete(self) -> bool:
        """Return whether the request has come to its own end."""
        return self._finish_reason is not None

    def apply(self, event: OutputEvent) -> bool:
        """Take an event in, and return whether it completes the request."""
        assert isinstance(event, SpeechOutput)
        self.parts += bool(event.samples)
        self._seconds += len(event.samples) / _SAMPLE_BYTES / event.sample_rate
        self._finish_reason = event.finish_reason
        return self.is_complete

    def done(self, request: "Request") -> SpeakDone:
        """Return the `done` of the request as it stands now."""
        reason = self._finish_reason or request.cancel_reason or "cancelled"
        return SpeakDone(
            id=request.id,
            finish_reason=reason,
            duration_s=round(self._seconds, 3),
            seed=request.seed,
            timings=request.timings(0),
        )


class Request:
    """A command in flight.

    The registry's lock guards `running`, `ended`, `cancel_reason` and `state`. The engine's thread alone writes the
    rest, but the registry drops `preparation` at the request's end.

    Args:
        id: The host's name for it.
        command: What the host sent.
        writer: The session's event writer.
        line_bytes: Size of the command's line.
        clock: Returns the time in seconds. It is read now, since the line has just arrived.
    """

    __slots__ = (
        "_clock",
        "accepted_at",
        "admitted",
        "cancel_reason",
        "command",
        "deadline",
        "deferred_error",
        "ended",
        "finish_round",
        "first_token_at",
        "id",
        "key",
        "line_bytes",
        "preparation",
        "progress_at",
        "rows",
        "running",
        "seed",
        "silent",
        "started_at",
        "state",
        "tokenizer_vocab_size",
        "writer",
    )

    def __init__(
        self, id: str, command: Command, writer: EventWriter, line_bytes: int, clock: Callable[[], float]
    ) -> None:
        self.id = id
        self.command = command
        self.writer = writer
        self.line_bytes = line_bytes
        self._clock = clock
        self.accepted_at = clock()
        self.state = _state(command)
        self.rows = self.state.unfinished_choices
        """Rows of the batch that it needs: one for each choice."""
        self.deferred_error: RequestError | None = None
        """An error that is known already and waits for its turn: the bridge answers in order."""
        self.tokenizer_vocab_size: int | None = None
        """Tokens of the described model's tokenizer without added ones, which the bridge reports; None if unknown."""
        self.silent: frozenset[str] = frozenset()
        """Sampling fields that the host left out, until the model's defaults are applied."""
        self.running = False
        """True from its start in the engine until its end, or until it must wait again."""
        self.ended = False
        self.cancel_reason: CancelReason | None = None
        self.key = 0
        self.finish_round = 0.0
        self.seed = _seed(command)
        timeout_ms = command.timeout_ms if isinstance(command, Generation | Transcribe | Speak) else None
        self.deadline = math.inf if timeout_ms is None else self.accepted_at + timeout_ms / 1000
        self.admitted = AdmittedRequest(prompt_tokens=0)
        self.preparation: Preparation | None = None
        self.started_at: float | None = None
        self.first_token_at: float | None = None
        self.progress_at = 0.0

    @property
    def status(self) -> Status:
        """Place of the request on its way. While it runs, its sequences in `generation.request_table` say more."""
        if self.ended:
            return Status.ENDED
        if not self.running:
            preparation = self.preparation  # another thread may drop it
            return Status.WAITING if preparation is None or preparation.done else Status.PREPARING
        has_prompt = self.admitted.prompt_tokens > 0
        return Status.PREFILLING if has_prompt and self.first_token_at is None else Status.DECODING

    def apply_sampling_defaults(self, defaults: SamplingDefaults | None) -> None:
        """Fill the sampling fields that the host left out with the model's defaults, if it has any."""
        if defaults is not None and isinstance(self.command, Generation):
            values = {name: value for name in self.silent if (value := getattr(defaults, name)) is not None}
            self.command = replace(self.command, **values)
        self.silent = frozenset()

    def done(self) -> Done:
        """Return the `done` of the request as it stands now."""
        return self.state.done(self)

    def cancellation(self) -> Done | RequestError:
        """Return the terminal of a cancelled request: its partial result, or an error if its kind has none."""
        if self.state.has_partial_result:
            return self.done()
        return RequestError("cancelled", f"the {self.command.name} was cancelled")

    def timings(self, completion_tokens: int) -> Timings:
        """Return the times of a request that ends now.

        Args:
            completion_tokens: Tokens generated for all choices.
        """
        now = self._clock()
        started, first = self.started_at, self.first_token_at
        timings = Timings(
            queued_ms=_ms((started or now) - self.accepted_at),
            total_ms=_ms(now - self.accepted_at),
        )
        if started is not None and first is not None:
            timings.prefill_ms = _ms(first - started)
            timings.first_token_ms = _ms(first - self.accepted_at)
            timings.prompt_tps = _rate(self.admitted.prompt_tokens, first - started)
            timings.decode_tps = _rate(completion_tokens - 1, now - first)
        return timings


def _state(command: Command) -> RequestState:
    if isinstance(command, Generation):
        return GenerationState(command.n)
    if isinstance(command, Embed):
        return EmbeddingState(len(command.input))
    if isinstance(command, Speak):
        return SpeechState()
    return TranscriptionState() if isinstance(command, Transcribe) else CommandState()


def _seed(command: Command) -> int:
    """Return the request's own seed, or draw one, so that even a request that never ran can be repeated."""
    if isinstance(command, Generation | Speak) and command.seed is not None:
        return command.seed
    return int.from_bytes(os.urandom(8)) & MAX_INT


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _rate(tokens: int, seconds: float) -> float | None:
    return round(tokens / seconds, 1) if tokens > 0 and seconds > 0 else None
