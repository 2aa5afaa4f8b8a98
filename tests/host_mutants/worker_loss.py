"""Hosts that take the loss of a worker for something else."""

from typing import Any

import msgspec

import lmwire.session
from lmwire import CrashLoop, Session
from lmwire.connection import Connection
from lmwire.process import Process
from lmwire_protocol import events
from mutation import mutant, wrap

_RESULT = (
    b'{"event":"done","id":"x","finish_reason":"stop","seed":1,'
    b'"usage":{"prompt_tokens":1,"cached_tokens":0,"completion_tokens":1},"timings":{"queued_ms":0,"total_ms":1}}'
)


@mutant("T-3", "worker-loss.a-death-loses-the-request:at-once-exit-0")
def takes_an_exit_with_0_for_success() -> None:
    def end(original: Any, self: Any, returncode: int) -> None:
        if returncode == 0:
            done = msgspec.json.decode(_RESULT, type=events.ResultDone)
            self._deliver([(mailbox, [done]) for mailbox in self._mailboxes.values()])
            self._mailboxes.clear()
        original(self, returncode)

    wrap(Connection, "_end", end)


@mutant("H-6", "worker-loss.a-death-loses-the-request:mid-terminal-exit-0")
def believes_half_a_line() -> None:
    def end(original: Any, self: Any, returncode: int) -> None:
        self._receive(b"\n")
        original(self, returncode)

    wrap(Connection, "_end", end)


@mutant("H-5", "worker-loss.a-line-that-is-no-object-ends-the-worker:text")
def drops_the_text_of_what_is_lost() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        arrivals = original(self, data)
        return [] if self.violation else arrivals

    wrap(Session, "receive", receive)


@mutant("H-5", "worker-loss.a-line-that-is-no-object-ends-the-worker:half-an-object")
def goes_on_after_garbage() -> None:
    wrap(Session, "_violate", lambda original, self, what, line: None)


@mutant("H-5", "worker-loss.a-line-that-is-no-object-ends-the-worker:list")
def lets_the_worker_live() -> None:
    wrap(Process, "signal", lambda original, self, signal: None)


@mutant("H-5", "worker-loss.a-line-over-1-mib-ends-the-worker:without-an-end")
def knows_no_longest_line() -> None:
    lmwire.session.CLIENT_LINE_BYTES = 1 << 30


@mutant("H-10", "worker-loss.a-worker-that-always-dies-is-not-started-for-ever")
def starts_again_without_a_pause() -> None:
    wrap(CrashLoop, "check", lambda original, self: None)
