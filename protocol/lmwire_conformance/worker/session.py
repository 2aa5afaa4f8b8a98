"""The record of one run of a worker: the lines of both sides. Every event is checked against the rules.

A host cannot know when the worker reads a line. A line therefore counts as sent before it is written. After a quit, a
signal or a refused hello, answers are optional: the worker may have exited.
"""

import time
from collections import Counter, defaultdict
from typing import Any, Final

import msgspec

from lmwire_protocol import (
    DONE_CMD,
    EXIT_CODES,
    Cancel,
    Command,
    Generation,
    Hello,
    LineSplitter,
    Ping,
    Quit,
    RequestError,
    Tokenize,
    decode_command,
    decode_object,
    limits,
    recover_id,
    usable_id,
)
from lmwire_protocol.events import EVENTS, Done, Error, Event, Progress, Token, ToolCall

from ..violation import Violation
from . import line_checks, ping_checks, result_checks
from .answers import ReceivedAnswers
from .pending_lines import PendingLine, line_ended_by_done, line_ended_by_error

RULES: Final = ("C-3", "I-3", "I-4", "O-2", "T-1", "T-2", "T-4", "#commands", "#events", "#progress", "#tokenize")
"""The rules that this module checks on every event of every run."""


class CheckedSession:
    """The lines of both sides.

    Attributes:
        objects: Every line of the worker.
        terminals: The terminals of each id, in order. A terminal has additional members such as `@text`, which describe
            the events before it. The README.md beside the transcripts lists them.
        errors_without_id: The errors without an id.
    """

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.terminals: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.errors_without_id: list[dict[str, Any]] = []
        self._bridge: bool | None = None
        self._splitter = LineSplitter(limits.LINE_IN_BYTES)
        self._pending: dict[str, list[PendingLine]] = defaultdict(list)  # by id: the lines without a terminal
        self._lines_by_id: Counter[str] = Counter()  # by id: the number of its lines
        self._cancels: dict[str, str | None] = {}  # answered cancels: targets by id, None for all
        self._sent_lines = 0
        self._in_flight = 0  # number of pending lines that use the engine
        self._lines_without_id = self._errors_expected = self._errors_seen = 0
        self._answers_hello: str | None = None
        self._names_commands = False  # whether a reply to `hello` has listed `done.cmd`
        self._ending = False
        self._quitting = False

    # The host.

    def note_written(self, data: bytes) -> None:
        """Record that the host is about to write these bytes."""
        for line in self._splitter.feed(data):
            self._send(line)

    def note_stdin_closed(self) -> None:
        """Record that the host is about to close stdin."""
        for line in self._splitter.finish():
            self._send(line)

    def note_end_requested(self) -> None:
        """Record that the host asks the worker to end at once: lines that are sent from now on may stay unread."""
        self._ending = True

    # The worker.

    def check_line(self, line: bytes) -> None:
        """Record and check a line of the worker, given without its newline.

        Raises:
            Violation: The worker may not write this line.
        """
        value = line_checks.read_line(line)
        self.objects.append(value)
        if self._sent_lines == 0:
            raise Violation(("F-19",), "nothing before a line was sent", line)
        if self._bridge:
            return
        event = _event(value, line)
        id = value.get("id")
        if not isinstance(id, str | None):
            raise Violation(("#events",), "an `id` that is a string", line)
        if self._quitting and not self._is_quit(id):
            raise Violation(("O-2",), "nothing after the `done` of `quit`", line)
        if len(self.objects) == 1 and self._answers_hello not in (None, id):
            raise Violation(("O-2",), "the answer to `hello`, which was the first line", line)
        if id is None:
            if event is not None:
                self._add_error_without_id(value, event, line)
        elif not self._pending[id]:
            raise Violation(("T-1",), f"nothing with the id {id!r}, since no request has it", line)
        elif isinstance(event, Done | Error):
            self._end(self._pending[id], value, event, line)
        elif event is not None:
            self._stream(self._pending[id], event, line)

    def check_end(self, code: int) -> None:
        """Check the end of the worker's output and its exit code.

        Raises:
            Violation: The worker left something unanswered, or the exit code is invalid.
        """
        if code not in EXIT_CODES:
            codes = ", ".join(map(str, EXIT_CODES))
            raise Violation(("#how-a-worker-ends",), f"one of the exit codes {codes}", f"exit code {code}")
        for entry in (entry for pending in self._pending.values() for entry in pending if entry.must_be_answered):
            raise Violation(
                ("T-1",), f"a terminal with the id {entry.id!r} ({entry.expected})", "the output ended without it"
            )
        if not self._bridge and self._errors_seen < self._errors_expected:
            expected = f"{self._errors_expected} errors for lines without a usable id"
            raise Violation(("F-10", "I-4"), expected, f"{self._errors_seen}")

    # Details.

    def _send(self, line: Any) -> None:
        self._sent_lines += 1
        id, command = self._read(line)
        if self._bridge:
            return
        if id is None:
            self._lines_without_id += 1
            self._errors_expected += not self._ending
            return
        self._lines_by_id[id] += 1
        self._pending[id].append(PendingLine(id, command, not self._ending, time.monotonic(), self._in_flight))
        self._in_flight += self._pending[id][-1].uses_engine
        if isinstance(command, Hello):
            if self._sent_lines == 1:
                self._answers_hello = id
            self._ending |= command.protocol[0] > limits.PROTOCOL_VERSION
        self._ending |= isinstance(command, Quit)

    def _read(self, line: Any) -> tuple[str | None, Command | RequestError]:
        """Return the id of a line, and its command or the error with which it must be refused."""
        try:
            fields = decode_object(line)
        except RequestError as error:
            return recover_id(line.data), error
        if self._bridge is None:
            self._bridge = "id" not in fields
        id = fields.get("id")
        if not isinstance(id, str) or not usable_id(id):
            return None, RequestError("invalid_request", "no usable id", field="id")
        try:
            return id, decode_command(fields)
        except RequestError as error:
            return id, error

    def _is_quit(self, id: str | None) -> bool:
        return any(isinstance(entry.command, Quit) for entry in self._pending.get(id or "", []))

    def _add_error_without_id(self, value: dict[str, Any], event: Event, line: bytes) -> None:
        if not isinstance(event, Error):
            raise Violation(("#events",), "an `id`, which only an error may lack", line)
        self.errors_without_id.append(value)
        if event.bad_id is None:
            self._errors_seen += 1
            if self._errors_seen > self._lines_without_id:
                raise Violation(("T-2",), "no error without `id`: every line so far had a usable id", line)
            return
        pending = self._pending[event.bad_id]
        if not pending or self._lines_by_id[event.bad_id] < 2:
            raise Violation(("I-3", "I-5"), "a `bad_id` that two lines have used, one of them unanswered", line)
        refused = [entry for entry in pending if event.code in (entry.expected, "duplicate_id")]
        if not refused:
            raise Violation(("I-5",), f"the code of the later line, {pending[-1].expected}", line)
        self._close(pending, refused[-1])

    def _stream(self, pending: list[PendingLine], event: Event, line: bytes) -> None:
        candidates = [
            entry for entry in pending if isinstance(entry.command, Command) and type(event) in entry.command.streams
        ]
        if not candidates:
            raise Violation(("#commands",), f"no such event for {pending[0].expected}", line)
        entry = candidates[0]
        if isinstance(event, Token):
            entry.answers.add_token(event, line)
        elif isinstance(event, ToolCall):
            entry.answers.add_call(event, line)
        elif isinstance(event, Progress):
            entry.progress += 1
            if entry.progress > 10 * (time.monotonic() - entry.sent_at) + 1:
                raise Violation(("#progress",), "at most ten progress events a second for one request", line)

    def _end(self, pending: list[PendingLine], value: dict[str, Any], event: Done | Error, line: bytes) -> None:
        entry = (
            line_ended_by_error(pending, event, line)
            if isinstance(event, Error)
            else line_ended_by_done(pending, value, line)
        )
        if _is_cancelled(event, value) and not self._may_be_cancelled(entry.id):
            raise Violation(("O-2", "C-3"), f"the `done` of a cancel of {entry.id!r} before it", line)
        if isinstance(event, Done):
            self._check_done(entry, value, line)
        self._close(pending, entry)
        self.terminals[entry.id].append({**value, **_joined(entry.answers)})

    def _check_done(self, entry: PendingLine, value: dict[str, Any], line: bytes) -> None:
        """Check a `done` against its command, and record what a hello lists, a cancel or a quit."""
        if isinstance(entry.command, Hello):
            self._names_commands = DONE_CMD in value["features"]
        named = value.get("cmd")
        if named != entry.expected and (self._names_commands or named is not None):
            raise Violation(("T-4",), f"the `cmd` of the request, {entry.expected!r}", line)
        match entry.command:
            case Generation() as command:
                result_checks.check(command, value, entry.answers, line)
            case Tokenize() as command:
                _check_count(command, value["count"], entry.answers.all[0].token_ids, line)
            case Cancel(target=target):
                self._cancels[entry.id] = target
            case Ping():
                ping_checks.check(value, entry.in_flight, line, ending=self._ending)
            case Quit():
                self._quitting = True
            case _:
                pass

    def _close(self, pending: list[PendingLine], entry: PendingLine) -> None:
        pending.remove(entry)
        self._in_flight -= entry.uses_engine

    def _may_be_cancelled(self, id: str) -> bool:
        return self._ending or any(target in (None, id) for target in self._cancels.values())


def _event(value: dict[str, Any], line: bytes) -> Event | None:
    """Return the event, or None if its name is unknown. A `done` has only the fields that all commands share."""
    name = value.get("event")
    if not isinstance(name, str):
        raise Violation(("#events",), "a member `event`", line)
    if name not in EVENTS:
        return None
    try:
        return msgspec.convert(value, EVENTS[name])
    except msgspec.ValidationError as error:
        rule = "#events" if name == "done" else f"#{name}"
        raise Violation((rule,), f"a valid {name} event: {error}", line) from None


def _joined(answers: ReceivedAnswers) -> dict[str, Any]:
    """Return the additional members of a terminal: the first choice, and all choices."""
    first, *_ = choices = [answer.to_dict() for answer in answers.all]
    return {
        **{f"@{name}": value for name, value in first.items()},
        "@tokens": sum(len(answer.token_ids) for answer in answers.all),
        "@choices": choices,
    }


def _check_count(command: Tokenize, count: int, token_ids: list[int], line: bytes) -> None:
    if not command.count_only and count != len(token_ids):
        raise Violation(("#tokenize",), f"as many tokens as were shown, {len(token_ids)}", line)


def _is_cancelled(event: Event, value: dict[str, Any]) -> bool:
    return (event.code if isinstance(event, Error) else value.get("finish_reason")) == "cancelled"
