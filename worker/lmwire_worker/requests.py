"""One accepted command's life, from its line to its terminal, and the words in which a session hears of it."""

import os
import time
from typing import Protocol

from lmwire_protocol import Command, Generation, RequestError
from lmwire_protocol.events import Done, Error, Progress, ResultDone, Timings, Usage
from lmwire_protocol.limits import MAX_INT

from .outbox import Outbox


class Voice(Protocol):
    """How a session words what happens to a request. Version 1 and the older bridge differ in nothing else."""

    serial: bool
    """One request at a time, each waiting for the one before: the bridge."""

    def tokens(self, outbox: Outbox, request: "Request", text: str, token_ids: list[int]) -> None:
        """Sends generated tokens."""
        ...

    def progress(self, event: Progress) -> bytes:
        """The line for a progress event; empty for none."""
        ...

    def terminal(self, request: "Request", event: Done | Error) -> bytes:
        """The request's last line; empty for none."""
        ...


class Request:
    """A command in flight. The registry's lock guards `running` and `cancelled`; the engine writes the rest.

    `refusal` is an answer that is known already and only waits for its turn (the bridge answers in order).
    """

    __slots__ = (
        "accepted_at",
        "cancelled",
        "command",
        "completion_tokens",
        "first_token_at",
        "id",
        "key",
        "line_bytes",
        "progress_at",
        "prompt_tokens",
        "refusal",
        "running",
        "seed",
        "started_at",
        "voice",
    )

    def __init__(self, id: str, command: Command, voice: Voice, line_bytes: int, accepted_at: float) -> None:
        self.id = id
        self.command = command
        self.voice = voice
        self.line_bytes = line_bytes
        self.accepted_at = accepted_at
        self.refusal: RequestError | None = None
        self.running = False
        self.cancelled = False
        self.key = 0
        self.seed = _seed(command)
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.started_at: float | None = None
        self.first_token_at: float | None = None
        self.progress_at = 0.0

    def result(self, finish_reason: str, stop: str | None = None, unshown: int = 0) -> ResultDone:
        """The `done` of a generation that ends now; `unshown` is 1 for an end-of-turn token, else 0."""
        return ResultDone(
            id=self.id,
            finish_reason=finish_reason,  # type: ignore[arg-type]
            stop=stop,
            seed=self.seed,
            usage=Usage(self.prompt_tokens, 0, self.completion_tokens + unshown),
            timings=self._timings(time.monotonic()),
        )

    def cancellation(self) -> Done | RequestError:
        """How a cancel ends it: with what a generation has so far, and with an error where there is nothing."""
        if self.command.done is ResultDone:
            return self.result("cancelled")
        return RequestError("cancelled", f"the {self.command.name} was cancelled")

    def _timings(self, now: float) -> Timings:
        started, first = self.started_at, self.first_token_at
        timings = Timings(
            queued_ms=_ms((started or now) - self.accepted_at),
            total_ms=_ms(now - self.accepted_at),
        )
        if started is not None and first is not None:
            timings.prefill_ms = _ms(first - started)
            timings.first_token_ms = _ms(first - self.accepted_at)
            timings.prompt_tps = _rate(self.prompt_tokens, first - started)
            timings.decode_tps = _rate(self.completion_tokens - 1, now - first)
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
