"""Hosts with faults in the handling of a worker that dies or breaks the protocol."""

import os
import signal
import threading
from typing import Any

import msgspec

import lmwire.protocol.session
from lmwire import CircuitBreaker, ClientSession, WorkerUnavailable
from lmwire.transport.child import _ChildProcess
from lmwire.transport.connection import Connection
from lmwire.transport.process import Process
from lmwire_protocol import Chat, Embed, Generate, events
from support.protocol.mutation import mutant, wrap

_RESULT = (
    b'{"event":"done","id":"x","finish_reason":"stop","seed":1,'
    b'"usage":{"prompt_tokens":1,"cached_tokens":0,"completion_tokens":1},"timings":{"queued_ms":0,"total_ms":1}}'
)


@mutant("T-3", "worker-loss.loses-a-request-when-the-worker-dies:at-once-exit-0")
def takes_an_exit_with_0_for_success() -> None:
    def end(original: Any, self: Any, returncode: int) -> None:
        if returncode == 0:
            done = msgspec.json.decode(_RESULT, type=events.ResultDone)
            self._deliver([(queue, [done]) for queue in self._queues.values()])
            self._queues.clear()
        original(self, returncode)

    wrap(Connection, "_end", end)


@mutant("H-6", "worker-loss.loses-a-request-when-the-worker-dies:mid-terminal-exit-0")
def believes_half_a_line() -> None:
    def end(original: Any, self: Any, returncode: int) -> None:
        self._receive(b"\n")
        original(self, returncode)

    wrap(Connection, "_end", end)


@mutant("H-5", "worker-loss.kills-the-worker-after-a-line-that-is-not-an-object:text")
def drops_the_text_of_what_is_lost() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        arrivals = original(self, data)
        return [] if self.violation else arrivals

    wrap(ClientSession, "receive", receive)


@mutant("H-5", "worker-loss.kills-the-worker-after-a-line-that-is-not-an-object:half-an-object")
def goes_on_after_garbage() -> None:
    wrap(ClientSession, "_violate", lambda original, self, what, line: None)


@mutant("H-5", "worker-loss.kills-the-worker-after-a-line-that-is-not-an-object:list")
def lets_the_worker_live() -> None:
    wrap(Process, "signal", lambda original, self, signal: None)


def skip_incomplete(event: bytes) -> None:
    """Ignore incomplete events of a kind instead of ending the worker."""

    def skip(original: Any, self: Any, line: bytes, error: Exception) -> None:
        if not line.startswith(b'{"event":"%b"' % event):
            original(self, line, error)

    wrap(ClientSession, "_reject_or_skip", skip)


@mutant("H-5", "worker-loss.kills-the-worker-after-an-incomplete-event:token-without-token-ids")
def ignores_an_incomplete_token() -> None:
    skip_incomplete(b"token")


@mutant("H-5", "worker-loss.kills-the-worker-after-an-incomplete-event:error-without-retryable")
def ignores_an_incomplete_error() -> None:
    skip_incomplete(b"error")


@mutant("H-5", "worker-loss.kills-the-worker-after-an-incomplete-event:tool-call-without-index")
def ignores_an_incomplete_call() -> None:
    skip_incomplete(b"tool_call")


@mutant("H-5", "worker-loss.kills-the-worker-after-an-incomplete-event:done-without-usage")
def believes_an_incomplete_terminal() -> None:
    whole = msgspec.json.decode(_RESULT, type=events.ResultDone)

    def read(original: Any, line: bytes, command: Any) -> Any:
        try:
            return original(line, command)
        except msgspec.ValidationError:
            return msgspec.structs.replace(whole, id=msgspec.json.decode(line)["id"])

    wrap(lmwire.protocol.session, "decode_done", read)


@mutant("H-5", "lines.kills-the-worker-after:done-load-without-context-len")
def checks_only_answers() -> None:
    def read(original: Any, line: bytes, command: Any) -> Any:
        try:
            return original(line, command)
        except msgspec.ValidationError:
            if command in (Generate, Chat):
                raise
            return msgspec.json.decode(line, type=events.Done)

    wrap(lmwire.protocol.session, "decode_done", read)


@mutant("H-5", "lines.kills-the-worker-after:done-chat-without-prompt-tokens")
def checks_no_nested_members() -> None:
    def read(original: Any, line: bytes, command: Any) -> Any:
        done = msgspec.json.decode(line)
        if command is Chat and isinstance(done.get("usage"), dict):
            done["usage"] = {"prompt_tokens": 0, "cached_tokens": 0, "completion_tokens": 0, **done["usage"]}
        return original(msgspec.json.encode(done), command)

    wrap(lmwire.protocol.session, "decode_done", read)


@mutant("H-5", "lines.kills-the-worker-after:done-embed-no-count")
def checks_no_vectors() -> None:
    def read(original: Any, line: bytes, command: Any) -> Any:
        done = msgspec.json.decode(line)
        return original(msgspec.json.encode({"count": 0, **done}) if command is Embed else line, command)

    wrap(lmwire.protocol.session, "decode_done", read)


@mutant("H-9", "worker-loss.reads-the-rest-of-the-pipe-after-the-exit")
def stops_reading_at_the_exit() -> None:
    def read(original: Any, self: Any) -> Any:
        self._reaper.join(0.1)  # the kit's worker may still be ending
        return b"" if has_exited(self.pid) else original(self)

    wrap(Process, "_read_stdout", read)


def has_exited(pid: int) -> bool:
    """Return whether a child has exited, whether or not it is reaped."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


@mutant("H-9", "worker-loss.loses-requests-at-the-end-of-stdout")
def lets_a_worker_live_without_its_stdout() -> None:
    def end(original: Any, self: Any) -> Any:
        data = original(self)
        if data == b"":
            self._kill_at = float("inf")
            self._on_exit(0)
        return data

    wrap(Process, "_read_stdout", end)


@mutant("H-3", "worker-loss.reads-on-after-a-failed-write")
def dies_of_a_failed_write() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


@mutant("H-9", "worker-loss.loses-requests-at-the-end-of-the-process:child")
def leaves_the_children_of_a_dead_worker() -> None:
    def send(original: Any, self: Any, number: int) -> None:
        if not has_exited(self.pid):
            original(self, number)

    wrap(_ChildProcess, "signal", send)


@mutant("H-5", "worker-loss.kills-the-worker-after-a-line-over-1-mib:without-an-end")
def knows_no_longest_line() -> None:
    lmwire.protocol.session.CLIENT_LINE_BYTES = 1 << 30


@mutant("H-10", "worker-loss.pauses-between-starts-of-a-worker-that-always-dies")
def starts_again_without_a_pause() -> None:
    wrap(CircuitBreaker, "check", lambda original, self: None)


@mutant("H-10", "worker-loss.pauses-between-starts-of-a-worker-that-always-dies")
def lets_requests_wait_during_a_pause() -> None:
    def check(original: Any, self: Any) -> None:
        try:
            original(self)
        except WorkerUnavailable:
            threading.Event().wait()

    wrap(CircuitBreaker, "check", check)
