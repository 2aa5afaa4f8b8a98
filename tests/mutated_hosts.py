"""The Python client's driver with one thing broken: `python mutated_hosts.py NAME`, one function a way to break it.

What must catch it stands beside each.
"""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

import msgspec

import lmwire.answer
import lmwire.base
import lmwire.connection
import lmwire.dones
import lmwire.process
import lmwire.session
from lmwire import CallPiece, CrashLoop, Patience, Piece, RequestFailed, Session
from lmwire.base import BaseWorker, Exchange
from lmwire.connection import Connection
from lmwire.process import Process
from lmwire_protocol import Cancel, encode_command, events

DRIVER = Path(__file__).parents[1] / "clients" / "python" / "conformance_driver.py"

_RESULT = (
    b'{"event":"done","id":"x","finish_reason":"stop","seed":1,'
    b'"usage":{"prompt_tokens":1,"cached_tokens":0,"completion_tokens":1},"timings":{"queued_ms":0,"total_ms":1}}'
)


@dataclass(frozen=True)
class Mutant:
    """One broken host.

    Args:
        breaks: what the report must name as broken.
        caught_by: the case that is played.
        mutate: replaces the one thing.
    """

    breaks: str
    caught_by: str
    mutate: Callable[[], None]

    @property
    def command(self) -> list[str]:
        """What runs it."""
        return [sys.executable, __file__, self.mutate.__name__]


MUTANTS: dict[str, Mutant] = {}


def mutant(breaks: str, caught_by: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enters a mutation under its function's name."""

    def enter(mutate: Callable[[], None]) -> Callable[[], None]:
        MUTANTS[mutate.__name__] = Mutant(breaks, caught_by, mutate)
        return mutate

    return enter


def wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Replaces a method by one that gets the original as its first argument."""
    original = getattr(owner, name)
    setattr(owner, name, lambda *arguments, **keywords: around(original, *arguments, **keywords))


# Ends.


@mutant("T-3", "losing.a-death-loses-the-request:at-once-exit-0")
def takes_an_exit_with_0_for_success() -> None:
    def end(original: Any, self: Any, returncode: int) -> None:
        if returncode == 0:
            done = msgspec.json.decode(_RESULT, type=events.ResultDone)
            self._deliver([(mailbox, [done]) for mailbox in self._mailboxes.values()])
            self._mailboxes.clear()
        original(self, returncode)

    wrap(Connection, "_end", end)


@mutant("H-6", "losing.a-death-loses-the-request:mid-terminal-exit-0")
def believes_half_a_line() -> None:
    def end(original: Any, self: Any, returncode: int) -> None:
        self._receive(b"\n")
        original(self, returncode)

    wrap(Connection, "_end", end)


@mutant("H-5", "losing.a-line-that-is-no-object-ends-the-worker:text")
def drops_the_text_of_what_is_lost() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        arrivals = original(self, data)
        return [] if self.violation else arrivals

    wrap(Session, "receive", receive)


@mutant("H-5", "losing.a-line-that-is-no-object-ends-the-worker:half-an-object")
def goes_on_after_garbage() -> None:
    wrap(Session, "_violate", lambda original, self, what, line: None)


@mutant("H-5", "losing.a-line-that-is-no-object-ends-the-worker:list")
def lets_the_worker_live() -> None:
    wrap(Process, "signal", lambda original, self, signal: None)


@mutant("H-5", "losing.a-line-over-1-mib-ends-the-worker:without-an-end")
def knows_no_longest_line() -> None:
    lmwire.session.CLIENT_LINE_BYTES = 1 << 30


@mutant("H-10", "losing.a-worker-that-always-dies-is-not-started-for-ever")
def starts_again_without_a_pause() -> None:
    wrap(CrashLoop, "check", lambda original, self: None)


# Reading.


@mutant("O-1", "reading.streams-interleave")
def loses_an_event_of_a_read() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        arrivals = original(self, data)
        for arrival in arrivals:
            if len(arrival.events) > 1:
                del arrival.events[0]
        return arrivals

    wrap(Session, "receive", receive)


@mutant("O-1", "reading.streams-interleave")
def gives_a_text_to_another_request() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        first = next(iter(self._pending), "")
        arrivals = original(self, data)
        return [arrival._replace(id=first) if type(arrival.events[0]) is Piece else arrival for arrival in arrivals]

    wrap(Session, "receive", receive)


@mutant("K-1", "reading.an-answer-is-its-texts-joined")
def strips_texts() -> None:
    Piece.text = property(lambda self: self.token.strip())  # pyright: ignore[reportAttributeAccessIssue]


@mutant("F-15", "reading.lines-are-cut-anywhere")
def decodes_each_read_by_itself() -> None:
    wrap(Session, "receive", lambda original, self, data: original(self, data.decode(errors="replace").encode()))


@mutant("F-12", "reading.the-longest-line-is-read")
def reads_lines_up_to_32_kib() -> None:
    lmwire.session.CLIENT_LINE_BYTES = 32 * 1024


@mutant("F-16", "reading.null-is-absent")
def takes_null_for_a_value() -> None:
    decode = lmwire.session._decode

    def strict(line: bytes) -> Any:
        if b":null" in line:
            raise msgspec.ValidationError("Expected `str`, got `null`")
        return decode(line)

    lmwire.session._decode = strict
    reads_null_as_a_broken_event()


@mutant("V-4", "reading.unknown-events-are-ignored")
def dies_of_an_unknown_event() -> None:
    wrap(Session, "_skip", lambda original, self, line, error: self._violate("an unknown event", line))


@mutant("V-4", "reading.unknown-ids-are-ignored")
def dies_of_an_unknown_id() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        for line in data.split(b"\n"):
            if b'"id":"not ' in line:
                self._violate("an unknown id", line)
        return original(self, data)

    wrap(Session, "receive", receive)


@mutant("V-4", "reading.an-unknown-finish-reason-reads-as-other")
def refuses_an_unknown_value() -> None:
    lmwire.dones._OPEN.clear()


@mutant("T-2", "reading.an-error-without-an-id-ends-nothing")
def ends_a_request_for_an_error_without_an_id() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        return original(self, data.replace(b'"bad_id":', b'"id":'))

    wrap(Session, "receive", receive)


@mutant("T-1", "reading.what-follows-a-terminal-is-ignored")
def believes_the_second_terminal() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        lines = data.split(b"\n")
        done = [line for line in lines if line.startswith(b'{"event":"done"')]
        last = {tuple(line.split(b",")[:2]): line for line in done}.values()
        return original(self, b"\n".join(line for line in lines if line not in done or line in last))

    wrap(Session, "receive", receive)


@mutant("W-6", "reading.a-failure-is-passed-on:busy")
def knows_no_failure_that_can_be_retried() -> None:
    def init(original: Any, self: Any, event: Any) -> None:
        original(self, event)
        self.retryable = False

    wrap(RequestFailed, "__init__", init)


@mutant("H-2", "reading.a-burst-is-read-whole")
def does_not_read_stderr() -> None:
    wrap(Process, "_read_stderr", lambda original, self: b"")


# Choices, channels, calls.


def change_pieces(change: Callable[[Piece], None]) -> None:
    """Has every piece of text changed before anyone sees it."""

    def receive(original: Any, self: Any, data: bytes) -> Any:
        arrivals = original(self, data)
        for arrival in arrivals:
            for event in arrival.events:
                if isinstance(event, Piece):
                    change(event)
        return arrivals

    wrap(Session, "receive", receive)


@mutant("N-3", "choosing.choices-are-told-apart")
def knows_no_choices() -> None:
    change_pieces(lambda piece: setattr(piece, "choice", 0))


@mutant("K-5", "choosing.channels-are-told-apart")
def shows_thoughts() -> None:
    change_pieces(lambda piece: setattr(piece, "channel", "content"))


@mutant("K-1", "choosing.channels-are-told-apart")
def drops_thoughts() -> None:
    Piece.reasoning = ""  # pyright: ignore[reportAttributeAccessIssue]


@mutant("V-4", "choosing.text-of-an-unknown-channel-is-not-the-answer")
def shows_what_it_does_not_know() -> None:
    def change(piece: Piece) -> None:
        if piece.channel != "reasoning":
            piece.channel = "content"

    change_pieces(change)


@mutant("K-7", "choosing.log-probabilities-arrive")
def loses_the_log_probabilities_of_text_that_is_held_back() -> None:
    def change(piece: Piece) -> None:
        if not piece.token:
            piece.logprobs = None

    change_pieces(change)


@mutant("V-4", "choosing.an-unknown-finish-reason-of-a-choice-reads-as-other")
def passes_an_unknown_end_of_a_choice_on() -> None:
    wrap(lmwire.dones, "_known", lambda original, finish_reason: finish_reason)


@mutant("F-16", "choosing.what-is-new-can-be-null-or-have-unknown-fields")
def reads_null_as_a_broken_event() -> None:
    wrap(Session, "_read_again", lambda original, self, line, error: self._skip(line, error))


@mutant("V-3", "choosing.what-is-not-listed-is-not-sent:field")
def sends_what_the_worker_does_not_know() -> None:
    wrap(BaseWorker, "_serving", lambda original, self, command: self._connection)


@mutant("Q-1", "calling.a-call-is-its-pieces-joined:in-two")
def takes_the_first_piece_for_the_call() -> None:
    wrap(lmwire.answer, "_call", lambda original, parts: original([parts[-1], *parts[:1]]))


@mutant("Q-1", "calling.calls-are-told-apart")
def mixes_the_calls_of_choices() -> None:
    def answers(original: Any, pieces: list[Any], result: Any) -> Any:
        for piece in pieces:
            if isinstance(piece, CallPiece):
                piece.choice = 0
        return original(pieces, result)

    wrap(lmwire.base, "whole_answers", answers)


@mutant("Q-2", "calling.a-call-that-is-none-leaves-the-others-alone")
def runs_what_is_no_call() -> None:
    def change(original: Any, pieces: Any) -> Any:
        told = list(pieces)
        for piece in told:
            piece.complete = None if piece.complete is None else True
        return original(told)

    wrap(lmwire.answer, "_calls", change)


@mutant("Q-2", "calling.a-call-that-is-cut-off-is-text")
def hides_the_text_of_what_is_no_call() -> None:
    def receive(original: Any, self: Any, data: bytes) -> Any:
        return original(self, data.replace(b'"token":"<tool_call>', b'"token":"'))

    wrap(Session, "receive", receive)


# Writing and starting.


@mutant("F-9", "writing.ids-stand-first")
def writes_the_id_last() -> None:
    def encode(id: str, command: Any) -> bytes:
        fields = json.loads(encode_command(id, command))
        return json.dumps({**{name: fields[name] for name in fields if name != "id"}, "id": id}).encode() + b"\n"

    lmwire.session.encode_command = encode


@mutant("#commands", "starting.hello-is-the-first-line")
def writes_a_field_of_its_own() -> None:
    lmwire.session.encode_command = lambda id, command: encode_command(id, command)[:-2] + b',"stream":true}\n'


@mutant("#commands", "writing.fields-arrive-as-they-were-given:settings")
def writes_integers_as_numbers() -> None:
    def encode(id: str, command: Any) -> bytes:
        return json.dumps(json.loads(encode_command(id, command), parse_int=float)).encode() + b"\n"

    lmwire.session.encode_command = encode


@mutant("I-2", "writing.ids-in-flight-are-not-used-again")
def numbers_requests_by_how_many_run() -> None:
    def send(original: Any, self: Any, command: Any) -> Any:
        self._ids = iter([len(self._pending) + 1])
        return original(self, command)

    wrap(Session, "send", send)


@mutant("H-3", "writing.both-pipes-can-be-full")
def waits_for_its_writes() -> None:
    def write(original: Any, self: Any, data: bytes) -> None:
        os.set_blocking(self._stdin.fileno(), True)
        self._stdin.write(data)

    wrap(Process, "write", write)


@mutant("H-4", "starting.a-banner-is-skipped")
def skips_no_banner() -> None:
    lmwire.session.BANNER_BYTES = 0


@mutant("H-1", "starting.the-worker-has-pipes-and-a-group-of-its-own")
def starts_the_worker_in_its_own_group() -> None:
    wrap(
        subprocess,
        "Popen",
        lambda original, *arguments, **keywords: original(*arguments, **keywords | {"start_new_session": False}),
    )


@mutant("H-1", "starting.the-worker-has-pipes-and-a-group-of-its-own")
def starts_the_worker_through_a_shell() -> None:
    def init(original: Any, self: Any, command: list[str], **keywords: Any) -> None:
        original(self, ["/bin/sh", "-c", '"$@"; exit', "sh", *command], **keywords)

    wrap(Process, "__init__", init)


@mutant("H-7", "starting.a-worker-that-never-answers-hello-is-given-up")
def waits_for_hello_for_ever() -> None:
    def init(original: Any, self: Any, *arguments: Any, **keywords: Any) -> None:
        original(self, *arguments, **keywords | {"start_timeout": 600.0})

    wrap(BaseWorker, "__init__", init)


# Giving up and closing.


@mutant("H-8", "waiting.a-request-that-is-given-up-is-cancelled")
def gives_up_without_a_cancel() -> None:
    wrap(Exchange, "cancel", lambda original, self: None)


def numbers_requests_by_the_lowest_free() -> None:
    """A correct host by itself."""

    def send(original: Any, self: Any, command: Any) -> Any:
        self._ids = iter([next(id for id in range(1, 10_000) if str(id) not in self._pending)])
        return original(self, command)

    wrap(Session, "send", send)


@mutant("H-8", "waiting.an-id-that-was-given-up-stays-taken")
def frees_the_id_of_what_it_gave_up() -> None:
    numbers_requests_by_the_lowest_free()

    def abandon(original: Any, self: Any, id: str) -> None:
        original(self, id)
        self._session._pending.pop(id)

    wrap(Connection, "abandon", abandon)


@mutant("C-3", "waiting.a-cancelled-request-ends-with-its-terminal")
def cancels_everything() -> None:
    def send(original: Any, self: Any, command: Any, *mailbox: Any) -> Any:
        return original(self, Cancel(all=True) if isinstance(command, Cancel) else command, *mailbox)

    wrap(Connection, "send", send)


@mutant("H-7", "ending.a-worker-is-asked-to-quit")
def closes_without_quit() -> None:
    def close(original: Any, self: Any, patience: Patience) -> None:
        self._process.close_stdin()
        self._process.wait(patience.eof)
        self.kill()

    wrap(Connection, "close", close)


@mutant("H-7", "ending.stdin-is-closed-after-quit")
def does_not_close_stdin() -> None:
    wrap(Process, "close_stdin", lambda original, self: None)


@mutant("H-7", "ending.sigterm-follows")
def kills_instead_of_terminating() -> None:
    wrap(Process, "signal", lambda original, self, signal: original(self, SIGKILL if signal == SIGTERM else signal))


@mutant("H-7", "ending.sigkill-is-the-last-step")
def does_not_kill_in_the_end() -> None:
    wrap(Connection, "kill", lambda original, self: None)


@mutant("H-7", "ending.stdin-is-closed-after-quit")
def waits_for_quit_for_ever() -> None:
    wrap(Connection, "close", lambda original, self, patience: original(self, patience._replace(quit=600.0)))


@mutant("H-2", "ending.both-pipes-are-read-while-closing")
def stops_reading_when_it_closes() -> None:
    def close(original: Any, self: Any, patience: Patience) -> None:
        self._process._selector.unregister(self._process._stdout)
        original(self, patience)

    wrap(Connection, "close", close)


@mutant("H-7", "ending.a-process-that-holds-the-pipes-delays-the-end-no-longer-than-the-steps:child")
def signals_the_worker_alone() -> None:
    def signal_group(original: Any, self: Any, signal: int) -> None:
        if not self._reaped:
            self._popen.send_signal(signal)

    wrap(Process, "_signal_group", signal_group)


if __name__ == "__main__":
    MUTANTS[sys.argv[1]].mutate()
    sys.path.insert(0, str(DRIVER.parent))
    sys.argv = [str(DRIVER)]
    runpy.run_path(str(DRIVER), run_name="__main__")
