"""The thread that ends requests and the process when the engine cannot: signals, a lost host, deadlines.

A running evaluation delays Python's own signal handlers, and nothing interrupts it. So signals arrive through a wakeup
descriptor, and this thread ends the process if the engine does not.
"""

import contextlib
import math
import os
import select
import signal

from ..process.exits import exit_now
from .request_registry import RequestRegistry
from .request_state import Request

EXIT_OK = 0
EXIT_HOST_GONE = 74

_TERMINATION_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""SIGINT arrives only from a terminal; see `install_signal_handlers`."""

_QUIT_SECONDS = 2.0
"""Time that requests have to end by themselves after a quit without drain."""

_SIGNAL_CANCEL_SECONDS = 1.0
_SIGNAL_EXIT_SECONDS = 1.8
_GONE_SECONDS = 1.0
_POLL_SECONDS = 0.5
"""Interval at which the monitor checks the host process, on systems that do not report its end."""

_MAX_WAIT_SECONDS = 86_400.0
"""Longest wait for news: the system limits it, and some requests' deadlines are further away."""


class LifecycleMonitor:
    """Watches the host, the signals and the clock.

    Args:
        registry: The requests in flight. Its clock is that of the monitor.
        stdout: Descriptor of the protocol's output. A closed reader is noticed even while nothing is written.
    """

    def __init__(self, registry: RequestRegistry, stdout: int) -> None:
        self._registry = registry
        self._wakeup, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._poller = select.poll()
        self._poller.register(self._wakeup, select.POLLIN)
        self._poller.register(stdout, 0)  # reports only hang-up and error
        self._hosts: set[int] = set()
        self._polled: set[int] = set()  # hosts whose end the system does not report
        self._end_all_at = math.inf
        self._exit_at = math.inf
        self._expires_at = math.inf
        self.exit_code = EXIT_OK
        """Exit code of the process once nothing is in flight."""

    def install_signal_handlers(self, *, interactive: bool) -> None:
        """Receive the signals through the wakeup descriptor. Must run on the main thread.

        Args:
            interactive: stdin is a terminal, so that Ctrl-C is meant for the worker.
        """
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _handle_by_descriptor)
        signal.signal(signal.SIGINT, _handle_by_descriptor if interactive else signal.SIG_IGN)

    def exit_with_host(self, pid: int) -> None:
        """End the worker when the process `pid` ends."""
        if pid in self._hosts:
            return
        self._hosts.add(pid)
        try:
            self._poller.register(os.pidfd_open(pid), select.POLLIN)
        except (AttributeError, OSError):  # not Linux, or it is gone already
            self._polled.add(pid)
        self._wake_up()

    def start_quit_timeout(self) -> None:
        """End all requests in 2 s, unless they have ended by then. The host may read as slowly as it likes."""
        self._end_all_at = min(self._end_all_at, self._registry.clock() + _QUIT_SECONDS)
        self._wake_up()

    def deadlines_changed(self) -> None:
        """Take a new request's deadline into account."""
        self._wake_up()

    def host_gone(self) -> None:
        """Cancel all requests and end the process, because the host no longer reads."""
        if self.exit_code != EXIT_HOST_GONE:
            self.exit_code = EXIT_HOST_GONE
            self._registry.drain()
            self._registry.cancel_where(lambda request: True)
            self._exit_at = min(self._exit_at, self._registry.clock() + _GONE_SECONDS)
            self._wake_up()

    def run(self) -> None:
        """Run the monitor's thread."""
        while True:
            for fd, events in self._poller.poll(self._milliseconds()):
                if fd == self._wakeup:
                    self._take_wakeups()
                else:
                    self._poller.unregister(fd)
                    if not events & select.POLLNVAL:  # reported by some systems for a terminal
                        self.host_gone()
            if not all(map(_exists, list(self._polled))):  # a copy: the reader may add one
                self.host_gone()
            self.enforce()

    def _take_wakeups(self) -> None:
        for number in os.read(self._wakeup, 512):
            if number in _TERMINATION_SIGNALS:  # a library may handle other signals, which arrive here as well
                self.terminate()

    def terminate(self) -> None:
        """Cancel all requests, write their terminals, and end the process within 2 s in any case."""
        now = self._registry.clock()
        self._exit_at = min(self._exit_at, now + _SIGNAL_EXIT_SECONDS)
        self._end_all_at = min(self._end_all_at, now + _SIGNAL_CANCEL_SECONDS)
        self._registry.drain()
        self._registry.cancel_where(lambda request: True)

    def enforce(self) -> None:
        """End requests, or the process, whose time is over."""
        now = self._registry.clock()
        if now >= self._end_all_at:
            self._end_all_at = math.inf
            self._registry.end_all(Request.cancellation)
            # A process that was stopped until now has not written these terminals yet.
            self._exit_at = max(self._exit_at, now + _SIGNAL_EXIT_SECONDS - _SIGNAL_CANCEL_SECONDS)
        if now >= self._exit_at:
            exit_now(self.exit_code)
        self._expires_at = self._registry.cancel_expired()

    def _milliseconds(self) -> float:
        until = min(self._end_all_at, self._exit_at, self._expires_at) - self._registry.clock()
        return min(max(0.0, until), _POLL_SECONDS if self._polled else _MAX_WAIT_SECONDS) * 1000 + 1

    def _wake_up(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: it is awake
            os.write(self._wake, b"\0")


def _handle_by_descriptor(number: int, frame: object) -> None:
    """Do nothing: the wakeup descriptor informs the monitor. Python writes to it only for handled signals."""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
