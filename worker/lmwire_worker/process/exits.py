"""The end of the process: its clean-up, then the immediate exit. Imports nothing that takes time."""

import contextlib
import os
import signal
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_removals: list[Callable[[], object]] = []


def on_exit(remove: Callable[[], object]) -> None:
    """Register a clean-up for `exit_now`. It must be quick, and two threads may call it at once."""
    _removals.append(remove)


def exit_now(code: int) -> "NoReturn":
    """Clean up and end the process at once.

    Python's own exit would wait for the threads, and MLX's would abort.
    """
    for remove in _removals:
        with contextlib.suppress(Exception):
            remove()
    os._exit(code)


# The signals that end a worker, from its first instruction on.


def exit_on_signals() -> None:
    """Let SIGTERM and SIGHUP end the process with code 0 at once, until the lifecycle monitor takes the signals.

    No request is read before that, so none has to be ended first. SIGINT counts only from a terminal.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    signal.signal(signal.SIGINT, _leave if os.isatty(0) else signal.SIG_IGN)


def _leave(number: int, frame: object) -> None:
    os._exit(0)
