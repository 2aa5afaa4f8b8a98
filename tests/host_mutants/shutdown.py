"""Hosts with faults in cancelling or closing."""

from signal import SIGKILL, SIGTERM
from typing import Any

from lmwire import ClientSession, ShutdownTimeouts, Worker
from lmwire.responses.pending_request import PendingRequest
from lmwire.transport.child import _ChildProcess
from lmwire.transport.connection import Connection
from lmwire.transport.process import Process
from lmwire_protocol import Cancel, Quit
from support.protocol.mutation import mutant, wrap


@mutant("H-8", "cancellation.cancels-a-request-that-it-gives-up")
def gives_up_without_a_cancel() -> None:
    wrap(PendingRequest, "cancel", lambda original, self: None)


def numbers_requests_by_the_lowest_free() -> None:
    """Change only how the host numbers requests, which is allowed."""

    def send(original: Any, self: Any, command: Any) -> Any:
        self._ids = iter([next(id for id in range(1, 10_000) if str(id) not in self._pending)])
        return original(self, command)

    wrap(ClientSession, "send", send)


@mutant("H-8", "cancellation.keeps-the-id-of-a-request-that-it-gave-up")
def frees_the_id_of_what_it_gave_up() -> None:
    numbers_requests_by_the_lowest_free()

    def abandon(original: Any, self: Any, id: str) -> None:
        original(self, id)
        self._session._pending.pop(id)

    wrap(Connection, "abandon", abandon)


@mutant("C-3", "cancellation.ends-a-cancelled-request-with-its-terminal")
def cancels_everything() -> None:
    def send(original: Any, self: Any, command: Any, *queue: Any) -> Any:
        return original(self, Cancel(all=True) if isinstance(command, Cancel) else command, *queue)

    wrap(Connection, "send", send)


@mutant("H-7", "shutdown.sends-quit-first")
def closes_without_quit() -> None:
    def close(original: Any, self: Any, timeouts: ShutdownTimeouts) -> None:
        self._process.close_stdin()
        self._process.wait(timeouts.eof)
        self.kill()

    wrap(Connection, "close", close)


@mutant("H-7", "shutdown.closes-stdin-after-quit")
def does_not_close_stdin() -> None:
    wrap(Process, "close_stdin", lambda original, self: None)


@mutant("H-7", "shutdown.sends-sigterm-after-the-end-of-stdin")
def kills_instead_of_terminating() -> None:
    wrap(Process, "signal", lambda original, self, signal: original(self, SIGKILL if signal == SIGTERM else signal))


@mutant("H-7", "shutdown.sends-sigkill-last")
def does_not_kill_in_the_end() -> None:
    wrap(Connection, "kill", lambda original, self: None)


@mutant("H-7", "shutdown.closes-stdin-after-quit")
def waits_for_quit_for_ever() -> None:
    wrap(Connection, "close", lambda original, self, timeouts: original(self, timeouts._replace(quit=600.0)))


@mutant("H-2", "shutdown.reads-both-pipes-while-closing")
def stops_reading_when_it_closes() -> None:
    def close(original: Any, self: Any, timeouts: ShutdownTimeouts) -> None:
        self._process._selector.unregister(self._process._stdout)
        original(self, timeouts)

    wrap(Connection, "close", close)


@mutant("H-7", "shutdown.closes-although-a-process-holds-the-pipes:child")
def signals_the_worker_alone() -> None:
    wrap(_ChildProcess, "signal", lambda original, self, signal: self._popen.send_signal(signal))


@mutant("H-7", "shutdown.drains-without-a-limit")
def goes_on_while_the_worker_drains() -> None:
    def quit(original: Any, self: Any, *, drain: bool = False, timeout: float | None = None) -> None:
        self.stream(Quit(drain=drain))

    wrap(Worker, "quit", quit)
