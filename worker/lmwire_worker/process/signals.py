"""The signals that end a worker, from its first instruction on; imports nothing that takes time."""

import os
import signal


def exit_on_signals() -> None:
    """Let SIGTERM and SIGHUP end the process with code 0 at once, until the lifecycle monitor takes the signals.

    No request is read before that, so none has to be ended first. SIGINT counts only from a terminal.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    signal.signal(signal.SIGINT, _leave if os.isatty(0) else signal.SIG_IGN)


def _leave(number: int, frame: object) -> None:
    os._exit(0)
