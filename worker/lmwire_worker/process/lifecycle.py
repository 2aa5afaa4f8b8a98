"""The thread that ends the process when the engine cannot: signals, a host that is gone, an end that takes too long.

A running evaluation holds up Python's own signal handlers and cannot be interrupted, so signals come through a wakeup
descriptor, and the last resort is to leave from here.
"""

import contextlib
import math
import os
import select
import signal
import time

from ..session.request_registry import RequestRegistry
from ..session.request_state import Request
from .exits import exit_now

EXIT_OK = 0
EXIT_HOST_GONE = 74

_TERMINATION_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""SIGINT comes here only from a terminal."""

_QUIT_SECONDS = 2.0
"""An undrained quit lets requests end by themselves for so long."""

_SIGNAL_CANCEL_SECONDS = 1.0
_SIGNAL_EXIT_SECONDS = 1.8
_GONE_SECONDS = 1.0
_POLL_SECONDS = 0.5
"""How often a host is looked at where the system cannot report its end."""

_MAX_WAIT_SECONDS = 86_400.0
"""How long a wait may be: the system cannot wait for ever, nor as long as some requests' time limits."""


class LifecycleMonitor:
    """Watches the host, the signals and the clock.

    Args:
        registry: what is in flight.
        stdout: the protocol's output; its reader's end is noticed even while nothing is written.
    """

    def __init__(self, registry: RequestRegistry, stdout: int) -> None:
        self._registry = registry
        self._wakeup, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._poller = select.poll()
        self._poller.register(self._wakeup, select.POLLIN)
        self._poller.register(stdout, 0)  # reports only hang-up and error
        self._hosts: set[int] = set()
        self._polled: set[int] = set()  # those of the hosts whose end the system does not report
        self._end_all_at = math.inf
        self._exit_at = math.inf
        self._expires_at = math.inf
        self.exit_code = EXIT_OK
        """With which code the process leaves once nothing is in flight."""

    def install_signal_handlers(self, *, interactive: bool) -> None:
        """Routes signals here. Must run on the main thread.

        Args:
            interactive: stdin is a terminal, so that Ctrl-C is meant for the worker.
        """
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _handle_by_descriptor)
        signal.signal(signal.SIGINT, _handle_by_descriptor if interactive else signal.SIG_IGN)

    def exit_with_host(self, pid: int) -> None:
        """Ends the worker when the process `pid` is gone."""
        if pid in self._hosts:
            return
        self._hosts.add(pid)
        try:
            self._poller.register(os.pidfd_open(pid), select.POLLIN)
        except (AttributeError, OSError):  # not Linux, or it is gone already
            self._polled.add(pid)
        self._wake_up()

    def start_quit_timeout(self) -> None:
        """An undrained quit: what has not ended in 2 s is ended from here. The host may read as slowly as it likes."""
        self._end_all_at = min(self._end_all_at, time.monotonic() + _QUIT_SECONDS)
        self._wake_up()

    def deadlines_changed(self) -> None:
        """A request with a time limit was accepted."""
        self._wake_up()

    def host_gone(self) -> None:
        """Nobody reads any more: give up what runs, and leave."""
        if self.exit_code != EXIT_HOST_GONE:
            self.exit_code = EXIT_HOST_GONE
            self._registry.drain()
            self._registry.cancel_where(lambda request: True)
            self._exit_at = min(self._exit_at, time.monotonic() + _GONE_SECONDS)
            self._wake_up()

    def run(self) -> None:
        """The watcher's thread."""
        while True:
            for fd, events in self._poller.poll(self._milliseconds()):
                if fd == self._wakeup:
                    self._take_wakeups()
                else:
                    self._poller.unregister(fd)
                    if not events & select.POLLNVAL:  # what some systems say of a terminal
                        self.host_gone()
            if not all(map(_exists, list(self._polled))):  # a copy: the reader may add one
                self.host_gone()
            self._enforce()

    def _take_wakeups(self) -> None:
        for number in os.read(self._wakeup, 512):
            if number in _TERMINATION_SIGNALS:  # a library may handle other signals, which are told here as well
                self._terminate()

    def _terminate(self) -> None:
        """SIGTERM, SIGHUP, Ctrl-C: cancel, write the terminals, and leave within 2 s whatever happens."""
        now = time.monotonic()
        self._exit_at = min(self._exit_at, now + _SIGNAL_EXIT_SECONDS)
        self._end_all_at = min(self._end_all_at, now + _SIGNAL_CANCEL_SECONDS)
        self._registry.drain()
        self._registry.cancel_where(lambda request: True)

    def _enforce(self) -> None:
        now = time.monotonic()
        if now >= self._exit_at:
            exit_now(self.exit_code)
        if now >= self._end_all_at:
            self._end_all_at = math.inf
            self._registry.end_all(Request.cancellation)
        self._expires_at = self._registry.cancel_expired()

    def _milliseconds(self) -> float:
        until = min(self._end_all_at, self._exit_at, self._expires_at) - time.monotonic()
        return min(max(0.0, until), _POLL_SECONDS if self._polled else _MAX_WAIT_SECONDS) * 1000 + 1

    def _wake_up(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: it is awake
            os.write(self._wake, b"\0")


def _handle_by_descriptor(number: int, frame: object) -> None:
    """The wakeup descriptor has told the watcher already; without a handler Python would not write to it."""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
