"""One accepted command's life, from its line to its terminal, and the words in which a session hears of it."""

import math
import os
import time
from typing import Literal, Protocol

from lmwire_protocol import Command, Embed, Generation, RequestError, Transcribe
from lmwire_protocol.events import (
    Choice,
    Done,
    EmbedDone,
    Error,
    FinishReason,
    Progress,
    ResultDone,
    Timings,
    TranscribeDone,
    Usage,
)
from lmwire_protocol.limits import MAX_INT

from ..engine.interface import (
    AdmittedRequest,
    EmbeddingOutput,
    Preparation,
    TokenDelta,
    ToolCallDelta,
    TranscriptSegment,
)
from .output_queue import OutputQueue

CancelReason = Literal["cancelled", "timeout"]
"""Why a request ends before its own end."""


class EventWriter(Protocol):
    """How a session words what happens to a request. Version 1 and the older bridge differ in nothing else."""

    is_serial: bool
    """One request at a time, each waiting for the one before: the bridge."""
    plain_text: bool
    """All generated text is content: the bridge knows neither reasoning nor calls."""

    def tokens(self, outbox: OutputQueue, request: "Request", piece: TokenDelta) -> None:
        """Sends generated tokens."""
        ...

    def call(self, outbox: OutputQueue, request: "Request", piece: ToolCallDelta) -> None:
        """Sends a piece of a tool call. Where all text is raw there is none."""
        ...

    def embedded(self, outbox: OutputQueue, request: "Request", outcome: EmbeddingOutput) -> None:
        """Sends a vector. The bridge asks for none."""
        ...

    def heard(self, outbox: OutputQueue, request: "Request", outcome: TranscriptSegment) -> None:
        """Sends a stretch of a transcript. The bridge asks for none."""
        ...

    def progress(self, event: Progress) -> bytes:
        """The line for a progress event; empty for none."""
        ...

    def terminal(self, request: "Request", event: Done | Error) -> bytes:
        """The request's last line; empty for none."""
        ...


class ChoiceState:
    """One of a generation's choices: what was sent of it, and how it ended."""

    __slots__ = ("accepted_draft_tokens", "completion_tokens", "finish_reason", "reasoning_tokens", "stop")

    def __init__(self) -> None:
        self.completion_tokens = 0
        self.reasoning_tokens = 0
        self.accepted_draft_tokens = 0
        self.finish_reason: FinishReason | None = None
        self.stop: str | None = None


class Request:
    """A command in flight. The registry's lock guards `running`, `cut` and `answers`; the engine writes the rest.

    `cut` is why it is to end, once it is. `refusal` is an answer that is known already and only waits for its turn
    (the bridge answers in order).
    """

    __slots__ = (
        "accepted_at",
        "admitted",
        "cancel_reason",
        "choices",
        "command",
        "deadline",
        "deferred_error",
        "dimensions",
        "duration_s",
        "finish_round",
        "first_token_at",
        "id",
        "is_transcribed",
        "key",
        "language",
        "line_bytes",
        "preparation",
        "progress_at",
        "running",
        "seed",
        "segments",
        "started_at",
        "vectors",
        "writer",
    )

    def __init__(self, id: str, command: Command, writer: EventWriter, line_bytes: int, accepted_at: float) -> None:
        self.id = id
        self.command = command
        self.writer = writer
        self.line_bytes = line_bytes
        self.accepted_at = accepted_at
        self.deferred_error: RequestError | None = None
        self.running = False
        self.cancel_reason: CancelReason | None = None
        self.key = 0
        self.finish_round = 0.0
        self.seed = _seed(command)
        timeout_ms = command.timeout_ms if isinstance(command, Generation | Transcribe) else None
        self.deadline = math.inf if timeout_ms is None else accepted_at + timeout_ms / 1000
        self.admitted = AdmittedRequest(prompt_tokens=0)
        self.choices = [ChoiceState() for _ in range(command.n if isinstance(command, Generation) else 1)]
        self.preparation: Preparation | None = None
        self.vectors = 0
        self.dimensions = 0
        self.segments = 0
        self.duration_s = 0.0
        self.language: str | None = None
        self.is_transcribed = False
        self.started_at: float | None = None
        self.first_token_at: float | None = None
        self.progress_at = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether a task has come to its own end."""
        if isinstance(self.command, Embed):
            return self.vectors == len(self.command.input)
        if isinstance(self.command, Transcribe):
            return self.is_transcribed
        return all(answer.finish_reason is not None for answer in self.choices)

    @property
    def unfinished_choices(self) -> int:
        """Return how many of its choices have not ended: so many rows it has, or is to have."""
        return sum(answer.finish_reason is None for answer in self.choices)

    def embedding(self) -> EmbedDone:
        """The `done` of an `embed` whose vectors are all sent."""
        usage = Usage(self.admitted.prompt_tokens, cached_tokens=0, completion_tokens=0)
        return EmbedDone(self.id, self.vectors, self.dimensions, usage)

    def transcript(self, finish_reason: Literal["stop"] | CancelReason) -> TranscribeDone:
        """The `done` of a transcription that ends now."""
        timings = self._timings(time.monotonic())
        return TranscribeDone(self.id, finish_reason, self.duration_s, timings, self.language)

    def result(self) -> ResultDone:
        """The `done` of a generation that ends now, in whatever state its answers are."""
        answers = self.choices
        why = self.cancel_reason or "cancelled"  # of those that have not ended by themselves
        ends = [Choice(answer.finish_reason or why, answer.completion_tokens, answer.stop) for answer in answers]
        return ResultDone(
            id=self.id,
            finish_reason=ends[0].finish_reason,
            stop=ends[0].stop,
            seed=self.seed,
            usage=Usage(
                prompt_tokens=self.admitted.prompt_tokens,
                cached_tokens=self.admitted.cached_tokens,
                completion_tokens=self._completion_tokens,
                reasoning_tokens=sum(answer.reasoning_tokens for answer in answers),
                draft_accepted=sum(answer.accepted_draft_tokens for answer in answers),
            ),
            timings=self._timings(time.monotonic()),
            choices=ends if len(ends) > 1 else None,
        )

    def cancellation(self) -> Done | RequestError:
        """How a cut ends it: with what a generation has so far, and with an error where there is nothing."""
        if self.command.done is ResultDone:
            return self.result()
        if self.command.done is TranscribeDone:
            return self.transcript(self.cancel_reason or "cancelled")
        return RequestError("cancelled", f"the {self.command.name} was cancelled")

    @property
    def _completion_tokens(self) -> int:
        return sum(answer.completion_tokens for answer in self.choices)

    def _timings(self, now: float) -> Timings:
        started, first = self.started_at, self.first_token_at
        timings = Timings(
            queued_ms=_ms((started or now) - self.accepted_at),
            total_ms=_ms(now - self.accepted_at),
        )
        if started is not None and first is not None:
            timings.prefill_ms = _ms(first - started)
            timings.first_token_ms = _ms(first - self.accepted_at)
            timings.prompt_tps = _rate(self.admitted.prompt_tokens, first - started)
            timings.decode_tps = _rate(self._completion_tokens - 1, now - first)
        return timings


def _seed(command: Command) -> int:
    """The request's own seed, or one drawn now, so that even a request that never ran can be run again with it."""
    if isinstance(command, Generation) and command.seed is not None:
        return command.seed
    return int.from_bytes(os.urandom(8)) & MAX_INT


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _rate(tokens: int, seconds: float) -> float | None:
    return round(tokens / seconds, 1) if tokens > 0 and seconds > 0 else None
