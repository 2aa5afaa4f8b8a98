"""Log lines on stderr, written by a thread with a bounded queue: a host that does not read them delays nothing."""

import os
import select
import threading
from queue import SimpleQueue

_LINES = 1000
_CLOSING_STEPS = 10


class Log:
    """Call it with a line. It drops lines while 1,000 wait, and later logs the number dropped."""

    def __init__(self) -> None:
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._dropped = 0
        self.thread = threading.Thread(target=self._run, name="log", daemon=True)
        self.thread.start()

    def __call__(self, text: str) -> None:
        """Queue a line, or count it as dropped."""
        if self._lines.qsize() >= _LINES:
            self._dropped += 1
            return
        if self._dropped:
            text, self._dropped = f"{text}\nlmwire: {self._dropped} log lines were dropped before this one", 0
        self._lines.put(text)

    def close(self, seconds: float) -> None:
        """Write the waiting lines, for at most `seconds`.

        A process that stands still gets nothing written. So the wait has steps, and such a pause takes only one.
        """
        self._lines.put(None)
        for _ in range(_CLOSING_STEPS):
            self.thread.join(seconds / _CLOSING_STEPS)
            if not self.thread.is_alive():
                return

    def _run(self) -> None:
        while (text := self._lines.get()) is not None:
            try:
                _write(f"lmwire: {text}\n".encode("utf-8", "replace"))
            except OSError:
                return  # stderr is closed


def _write(data: bytes) -> None:
    while data:
        try:
            data = data[os.write(2, data) :]
        except BlockingIOError:  # the host shares a descriptor that it made non-blocking
            select.select([], [2], [])
