"""The kit's side of one worker: it checks the lines of the host, and decides what the worker writes."""

import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from lmwire_protocol import Command, Line, RequestError, decode_command, decode_object, limits, usable_id

from . import wire
from .case_failure import CaseFailure, WorkerEnded, quote
from .wire import Event

_POLL_S: Final = 0.01

_UNASKED_REPLIES: Final[Mapping[str, Callable[[str], Event]]] = MappingProxyType(
    {
        "hello": wire.hello_done,
        "info": wire.model_done,
        "ping": wire.ping_done,
        "stats": wire.stats_done,
        "cancel": lambda id: wire.cancel_done(id, 1),
    }
)
"""Replies to the commands that a host may send at any time."""


class HostRequest(NamedTuple):
    """A line that the host wrote."""

    id: str
    name: str
    """The value of `cmd`."""
    command: Command
    line: bytes


class PlayedWorker:
    """One worker process. Its methods send orders to it and wait until they are carried out.

    All methods raise CaseFailure if the host keeps the worker waiting, and WorkerEnded if it has ended the worker.

    Args:
        connection: Leads to the worker process.
        log: Called with each line, for the report of a failure.
        timeout: Maximum seconds of any wait.

    Attributes:
        pid: Process id.
        group: Process group id.
        parent: Process id of the process that started it.
        terminals: The standard descriptors that are terminals.
    """

    def __init__(self, connection: Connection, log: Callable[[str], None], timeout: float) -> None:
        self._connection = connection
        self._log = log
        self._timeout = timeout
        self._in_flight: dict[str, str] = {}  # names of the commands, by id
        facts = self._receive("a worker that starts")
        self.pid: int = facts["pid"]
        self.group: int = facts["group"]
        self.parent: int = facts["parent"]
        self.terminals: list[int] = facts["terminals"]

    def read(self, expected: str = "a line from the host") -> HostRequest | None:
        """Return the host's next line, which must be a valid command, or None if it has closed the worker's stdin."""
        while (data := self._order(expected, "read_line")) is not None and not data.strip():
            pass  # [F-2]: blank lines are ignored
        self._log(f"→ {quote(data)}" if data is not None else "→ (end of stdin)")
        return None if data is None else self._checked(data)

    def expect(self, name: str) -> HostRequest:
        """Return the host's next command of this name. Other commands that may come at any time are answered."""
        expected = f"a `{name}` from the host"
        while True:
            request = self.read(expected)
            if request is None:
                raise CaseFailure(expected, "the end of the worker's stdin")
            if request.name == name:
                return request
            self._answer_unasked(request, expected)

    def expect_end_of_input(self) -> None:
        """Wait until the host closes the worker's stdin. Commands that may come at any time are answered."""
        expected = "the end of the worker's stdin"
        while request := self.read(expected):
            self._answer_unasked(request, expected)

    def input_ends_within(self, seconds: float) -> bool:
        """Return whether the host closes the worker's stdin within some seconds."""
        return self._order("the end of stdin, or a wait", "input_ends_within", seconds)

    def write(self, *events: Event | bytes) -> None:
        """Write events, and bytes unchanged, in one write."""
        lines: list[bytes] = []
        for event in events:
            lines.append(event if isinstance(event, bytes) else wire.encode(self._named(event)))
            self._log(f"← {quote(lines[-1])}")
            if isinstance(event, dict) and event.get("event") in ("done", "error"):
                self.forget(event.get("id"))
        self._order("a host that reads the worker's stdout", "write", 1, b"".join(lines))

    def _named(self, event: Event) -> Event:
        """Return an event; a `done` names its command, as that of every worker with `done.cmd` does."""
        command = self._in_flight.get(str(event.get("id"))) if event.get("event") == "done" else None
        return {**event, "cmd": command} if command else event

    def write_last(self, *events: Event | bytes) -> None:
        """Write events at which the host may end the worker."""
        with suppress(WorkerEnded):
            self.write(*events)

    def forget(self, id: object) -> None:
        """Free an id whose terminal was written as bytes."""
        self._in_flight.pop(str(id), None)

    def flood_stderr(self) -> None:
        """Write 1 MiB to stderr, far more than a pipe holds."""
        self._log("  (the worker writes 1 MiB to stderr)")
        self._order("a host that reads the worker's stderr", "write", 2, (b"x" * 1023 + b"\n") * 1024)

    def close_stdout(self) -> None:
        """Close stdout, and live on."""
        self._log("  (the worker closes its stdout)")
        self._order("the end of stdout", "close", 1)

    def close_stdin(self) -> None:
        """Close stdin, so that the host's writes fail, and live on."""
        self._log("  (the worker closes its stdin)")
        self._order("the end of stdin", "close", 0)

    def end(self, status: int) -> None:
        """Exit with a code, or die of a signal, given as a negative number."""
        self._log(f"  (the worker {f'exits with code {status}' if status >= 0 else f'dies of signal {-status}'})")
        with suppress(WorkerEnded):
            self._order("the worker's end", "end", status)

    def fork(self, *, daemon: bool) -> None:
        """Start a child that holds the worker's pipes open. It connects to the kit like a new worker."""
        self._log("  (the worker starts a process that holds its pipes open)")
        self._order("a child", "fork", daemon)

    def block_sigterm(self) -> None:
        """Survive SIGTERM from now on."""
        self._order("a blocked signal", "block_signal", int(signal.SIGTERM))

    def sigterm_arrived(self) -> bool:
        """Return whether SIGTERM arrived since it was blocked."""
        return signal.SIGTERM in self._order("SIGTERM, which the worker survives", "pending_signals")

    def expect_sigterm(self) -> None:
        """Wait for SIGTERM, which must arrive before the worker ends."""
        deadline = time.monotonic() + self._timeout
        while not self.sigterm_arrived():
            if time.monotonic() > deadline:
                raise CaseFailure("SIGTERM", f"none within {self._timeout:g} s")
            time.sleep(_POLL_S)
        self._log("  (SIGTERM)")

    def expect_killed(self) -> None:
        """Wait until the host has killed the worker."""
        if not self._connection.poll(self._timeout) or not self.ended:
            raise CaseFailure("the host kills the worker", f"the worker is alive after {self._timeout:g} s")

    @property
    def ended(self) -> bool:
        """Return whether the process is gone."""
        if not self._connection.poll():
            return False
        try:
            self._connection.recv()
        except (EOFError, OSError):
            return True
        return False

    def disconnect(self) -> None:
        """Close the connection, at which the process ends if it is alive."""
        self._connection.close()

    def _answer_unasked(self, request: HostRequest, expected: str) -> None:
        if request.name not in _UNASKED_REPLIES:
            raise CaseFailure(expected, quote(request.line))
        self.write(_UNASKED_REPLIES[request.name](request.id))

    def _order(self, purpose: str, *order: Any) -> Any:
        try:
            self._connection.send(order)
        except OSError:
            raise WorkerEnded(purpose) from None
        return self._receive(purpose)

    def _receive(self, purpose: str) -> Any:
        if not self._connection.poll(self._timeout):
            raise CaseFailure(purpose, f"nothing within {self._timeout:g} s")
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            raise WorkerEnded(purpose) from None

    def _checked(self, data: bytes) -> HostRequest:
        """Return the line as a command.

        Raises:
            CaseFailure: The host may not write this line.
        """
        line = data.removesuffix(b"\n")
        if len(line) > limits.LINE_IN_BYTES:
            raise CaseFailure(f"lines up to {limits.LINE_IN_BYTES} bytes", f"one of {len(line)}", "F-3")
        try:
            fields = decode_object(Line(line))
        except RequestError as error:
            raise CaseFailure("one JSON object a line", f"{quote(line)} ({error})", "F-1", "F-8") from None
        id = fields.get("id")
        if not isinstance(id, str) or not usable_id(id):
            raise CaseFailure("an id of 1 to 128 bytes", quote(line), "I-1")
        if id in self._in_flight:
            raise CaseFailure("an id that is not in flight", quote(line), "I-2", "H-8")
        try:
            command = decode_command(fields)
        except RequestError as error:
            raise CaseFailure("a command of version 1.0", f"{quote(line)} ({error})", "#commands") from None
        self._in_flight[id] = command.name
        return HostRequest(id, command.name, command, line)
