"""Hosts that give up or close wrongly."""

from signal import SIGKILL, SIGTERM
from typing import Any

from lmwire import Patience, Session
from lmwire.base import Exchange
from lmwire.connection import Connection
from lmwire.process import Process
from lmwire_protocol import Cancel
from mutation import mutant, wrap


@mutant("H-8", "cancellation.a-request-that-is-given-up-is-cancelled")
def gives_up_without_a_cancel() -> None:
    wrap(Exchange, "cancel", lambda original, self: None)


def numbers_requests_by_the_lowest_free() -> None:
    """A correct host by itself."""

    def send(original: Any, self: Any, command: Any) -> Any:
        self._ids = iter([next(id for id in range(1, 10_000) if str(id) not in self._pending)])
        return original(self, command)

    wrap(Session, "send", send)


@mutant("H-8", "cancellation.an-id-that-was-given-up-stays-taken")
def frees_the_id_of_what_it_gave_up() -> None:
    numbers_requests_by_the_lowest_free()

    def abandon(original: Any, self: Any, id: str) -> None:
        original(self, id)
        self._session._pending.pop(id)

    wrap(Connection, "abandon", abandon)


@mutant("C-3", "cancellation.a-cancelled-request-ends-with-its-terminal")
def cancels_everything() -> None:
    def send(original: Any, self: Any, command: Any, *mailbox: Any) -> Any:
        return original(self, Cancel(all=True) if isinstance(command, Cancel) else command, *mailbox)

    wrap(Connection, "send", send)


@mutant("H-7", "shutdown.a-worker-is-asked-to-quit")
def closes_without_quit() -> None:
    def close(original: Any, self: Any, patience: Patience) -> None:
        self._process.close_stdin()
        self._process.wait(patience.eof)
        self.kill()

    wrap(Connection, "close", close)


@mutant("H-7", "shutdown.stdin-is-closed-after-quit")
def does_not_close_stdin() -> None:
    wrap(Process, "close_stdin", lambda original, self: None)


@mutant("H-7", "shutdown.sigterm-follows")
def kills_instead_of_terminating() -> None:
    wrap(Process, "signal", lambda original, self, signal: original(self, SIGKILL if signal == SIGTERM else signal))


@mutant("H-7", "shutdown.sigkill-is-the-last-step")
def does_not_kill_in_the_end() -> None:
    wrap(Connection, "kill", lambda original, self: None)


@mutant("H-7", "shutdown.stdin-is-closed-after-quit")
def waits_for_quit_for_ever() -> None:
    wrap(Connection, "close", lambda original, self, patience: original(self, patience._replace(quit=600.0)))


@mutant("H-2", "shutdown.both-pipes-are-read-while-closing")
def stops_reading_when_it_closes() -> None:
    def close(original: Any, self: Any, patience: Patience) -> None:
        self._process._selector.unregister(self._process._stdout)
        original(self, patience)

    wrap(Connection, "close", close)


@mutant("H-7", "shutdown.a-process-that-holds-the-pipes-delays-the-end-no-longer-than-the-steps:child")
def signals_the_worker_alone() -> None:
    def signal_group(original: Any, self: Any, signal: int) -> None:
        if not self._reaped:
            self._popen.send_signal(signal)

    wrap(Process, "_signal_group", signal_group)
