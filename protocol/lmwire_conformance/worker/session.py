"""One run of a worker as its host knows it: what was sent, what is owed, what came; every event is held to the rules.

A host cannot know when a line is read. So a line counts as sent before it is written, and what is owed after a quit,
a signal or a refused hello is left open: the worker may have been gone.
"""

import time
from collections import Counter, defaultdict
from typing import Any, Final

import msgspec

from lmwire_protocol import (
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

RULES: Final = ("C-3", "I-3", "I-4", "O-2", "T-1", "T-2", "#commands", "#events", "#progress", "#tokenize")
"""The rules that are checked here, on every event of every run."""


class CheckedSession:
    """What both sides have said.

    `terminals` has the terminals of each id in order, `strays` the errors without id, `objects` every line. A terminal
    has members on top that tell of its stream: `@text` and others; README.md beside the transcripts lists them.
    """

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.terminals: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.errors_without_id: list[dict[str, Any]] = []
        self._bridge: bool | None = None
        self._splitter = LineSplitter(limits.LINE_IN_BYTES)
        self._uses: dict[str, list[PendingLine]] = defaultdict(list)  # those unanswered
        self._used: Counter[str] = Counter()  # all
        self._cancels: dict[str, str | None] = {}  # those answered: by id, their targets; None for all
        self._sent_lines = 0
        self._in_flight = 0  # those unanswered that a worker has to work on
        self._stray_lines = self._owed_strays = self._stray_answers = 0
        self._answers_hello: str | None = None
        self._ending = False
        self._quitting = False

    # What the host does.

    def note_written(self, data: bytes) -> None:
        """The host is about to write this."""
        for line in self._splitter.feed(data):
            self._send(line)

    def note_stdin_closed(self) -> None:
        """The host is about to close stdin."""
        for line in self._splitter.finish():
            self._send(line)

    def note_end_requested(self) -> None:
        """The host asks the worker to end at once: what is sent from now on may find nobody."""
        self._ending = True

    # What the worker does.

    def check_line(self, line: bytes) -> None:
        """The worker has written this line, given without its newline.

        Raises:
            Violation: it may not.
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
                self._stray(value, event, line)
        elif not self._uses[id]:
            raise Violation(("T-1",), f"nothing with the id {id!r}, of which no request is in flight", line)
        elif isinstance(event, Done | Error):
            self._end(self._uses[id], value, event, line)
        elif event is not None:
            self._stream(self._uses[id], event, line)

    def check_end(self, code: int) -> None:
        """The worker's output has ended, and it exited with this code.

        Raises:
            Violation: it owes something, or has no such exit code.
        """
        if code not in EXIT_CODES:
            codes = ", ".join(map(str, EXIT_CODES))
            raise Violation(("#how-a-worker-ends",), f"one of the exit codes {codes}", f"exit code {code}")
        for use in (use for uses in self._uses.values() for use in uses if use.must_be_answered):
            raise Violation(
                ("T-1",), f"a terminal with the id {use.id!r} ({use.expected})", "the output ended without it"
            )
        if not self._bridge and self._stray_answers < self._owed_strays:
            owed = f"{self._owed_strays} errors for lines without a usable id"
            raise Violation(("F-10", "I-4"), owed, f"{self._stray_answers}")

    # Details.

    def _send(self, line: Any) -> None:
        self._sent_lines += 1
        id, command = self._read(line)
        if self._bridge:
            return
        if id is None:
            self._stray_lines += 1
            self._owed_strays += not self._ending
            return
        self._used[id] += 1
        self._uses[id].append(PendingLine(id, command, not self._ending, time.monotonic(), self._in_flight))
        self._in_flight += self._uses[id][-1].uses_engine
        if isinstance(command, Hello):
            if self._sent_lines == 1:
                self._answers_hello = id
            self._ending |= command.protocol[0] > limits.PROTOCOL_VERSION
        self._ending |= isinstance(command, Quit)

    def _read(self, line: Any) -> tuple[str | None, Command | RequestError]:
        """A line as a worker reads it: the id to answer to, and the command or how it is refused."""
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
        return any(isinstance(use.command, Quit) for use in self._uses.get(id or "", []))

    def _stray(self, value: dict[str, Any], event: Event, line: bytes) -> None:
        if not isinstance(event, Error):
            raise Violation(("#events",), "an `id`, which only an error may lack", line)
        self.errors_without_id.append(value)
        if event.bad_id is None:
            self._stray_answers += 1
            if self._stray_answers > self._stray_lines:
                raise Violation(("T-2",), "no error without `id`: every line so far had a usable one", line)
            return
        uses = self._uses[event.bad_id]
        if not uses or self._used[event.bad_id] < 2:
            raise Violation(("I-3", "I-5"), "a `bad_id` that two lines have used, one of them unanswered", line)
        refused = [use for use in uses if event.code in (use.expected, "duplicate_id")]
        if not refused:
            raise Violation(("I-5",), f"the code of the later line, {uses[-1].expected}", line)
        self._close(uses, refused[-1])

    def _stream(self, uses: list[PendingLine], event: Event, line: bytes) -> None:
        able = [use for use in uses if isinstance(use.command, Command) and type(event) in use.command.streams]
        if not able:
            raise Violation(("#commands",), f"no such event for {uses[0].expected}", line)
        use = able[0]
        if isinstance(event, Token):
            use.answers.add_token(event, line)
        elif isinstance(event, ToolCall):
            use.answers.add_call(event, line)
        elif isinstance(event, Progress):
            use.progress += 1
            if use.progress > 10 * (time.monotonic() - use.sent_at) + 1:
                raise Violation(("#progress",), "at most ten progress events a second for one request", line)

    def _end(self, uses: list[PendingLine], value: dict[str, Any], event: Done | Error, line: bytes) -> None:
        use = (
            line_ended_by_error(uses, event, line)
            if isinstance(event, Error)
            else line_ended_by_done(uses, value, line)
        )
        if _is_cancelled(event, value) and not self._may_be_cancelled(use.id):
            raise Violation(("O-2", "C-3"), f"the `done` of a cancel of {use.id!r} before it", line)
        if isinstance(use.command, Generation) and isinstance(event, Done):
            result_checks.check(use.command, value, use.answers, line)
        if isinstance(use.command, Tokenize) and isinstance(event, Done):
            _check_count(use.command, value["count"], use.answers.all[0].token_ids, line)
        if isinstance(use.command, Cancel) and isinstance(event, Done):
            self._cancels[use.id] = use.command.target
        if isinstance(use.command, Ping) and isinstance(event, Done):
            ping_checks.check(value, use.in_flight, line, ending=self._ending)
        self._quitting |= isinstance(use.command, Quit) and isinstance(event, Done)
        self._close(uses, use)
        self.terminals[use.id].append({**value, **_joined(use.answers)})

    def _close(self, uses: list[PendingLine], use: PendingLine) -> None:
        uses.remove(use)
        self._in_flight -= use.uses_engine

    def _may_be_cancelled(self, id: str) -> bool:
        return self._ending or any(target in (None, id) for target in self._cancels.values())


def _event(value: dict[str, Any], line: bytes) -> Event | None:
    """The event, a `done` only as far as all have it; None for one that this kit does not know."""
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
    """What an answer's pattern can ask for on top of its terminal: the first choice, and all of them."""
    first, *_ = told = [answer.to_dict() for answer in answers.all]
    return {
        **{f"@{name}": value for name, value in first.items()},
        "@tokens": sum(len(answer.token_ids) for answer in answers.all),
        "@choices": told,
    }


def _check_count(command: Tokenize, count: int, token_ids: list[int], line: bytes) -> None:
    if not command.count_only and count != len(token_ids):
        raise Violation(("#tokenize",), f"as many tokens as were shown, {len(token_ids)}", line)


def _is_cancelled(event: Event, value: dict[str, Any]) -> bool:
    return (event.code if isinstance(event, Error) else value.get("finish_reason")) == "cancelled"
