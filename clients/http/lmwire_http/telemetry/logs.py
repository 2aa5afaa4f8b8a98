"""The log, on stderr: a line a request, and what goes wrong. No prompt, no answer and no key is ever in it."""

import json
import logging
import os
import select
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from queue import SimpleQueue
from time import sleep
from typing import Any, Final, Literal

_LINES: Final = 10_000
"""Lines that wait for whoever reads stderr. More are dropped: the server waits for no terminal, and no pipe."""
_LAST_LINES_S: Final = 2.0
_REST_S: Final = 0.02
_log = logging.getLogger("lmwire_http")


def log(level: int, message: str, facts: Mapping[str, Any]) -> None:
    """A line with facts, each in a field of its own."""
    _log.log(level, message, extra={"facts": facts})


def redacted(text: str, keys: Sequence[str]) -> str:
    """Return the text with every API key in it replaced.

    Args:
        text: For a log, or for a client.
        keys: The API keys.
    """
    for key in keys:
        for written in (key, json.dumps(key)[1:-1]):
            text = text.replace(written, "[API key]")
    return text


@contextmanager
def logging_to_stderr(format: Literal["text", "json"], keys: Sequence[str] = ()) -> Iterator[None]:
    """Write what is logged in the block to stderr, by libraries too.

    Args:
        format: Of the lines.
        keys: API keys, which no line may have.
    """
    lines = Lines(keys)
    lines.setFormatter(JsonLines() if format == "json" else TextLines())
    root = logging.getLogger()
    root.addHandler(lines)
    root.setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # its "Started server process" tells nobody anything
    try:
        yield
    finally:
        root.removeHandler(lines)
        lines.close()


class Lines(logging.Handler):
    """Writes lines by a thread of its own."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        super().__init__()
        self._keys = sorted(keys, key=len, reverse=True)
        self._waiting: SimpleQueue[str | None] = SimpleQueue()
        self._dropped = 0
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        if self._waiting.qsize() >= _LINES:
            self._dropped += 1
            return
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            log(logging.WARNING, "lines of the log were dropped before this one", {"lines": dropped})
        try:
            self._waiting.put(redacted(f"{self.format(record)}\n", self._keys))
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Writes what is waiting, if it is read in time."""
        self._waiting.put(None)
        self._thread.join(_LAST_LINES_S)
        super().close()

    def _write(self) -> None:
        more = True
        while more:
            lines = [self._waiting.get()]
            # No more than wait now: who logs faster than this thread reads would keep it from ever writing.
            lines += [self._waiting.get() for _ in range(self._waiting.qsize())]
            more = lines[-1] is not None
            text = "".join([line for line in lines if line is not None])
            try:
                _write(text.encode("utf-8", "backslashreplace"))
            except OSError:
                return  # nobody can read it any more
            if more:
                sleep(_REST_S)  # requests end together, and to be woken for each line costs more than the line


class TextLines(logging.Formatter):
    """A line for people: time, level, message, and `name=value` for each fact."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        facts = "".join([f" {name}={_word(value)}" for name, value in _facts(record).items()])
        line = f"{_time(record)} {record.levelname.lower()} {record.getMessage()}{facts}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """An object a line, for programs."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _facts(record: logging.LogRecord) -> Mapping[str, Any]:
    return getattr(record, "facts", {})


def _word(value: Any) -> str:
    """The value in one word: quoted where it has spaces, or what would look like another line or fact."""
    text = str(value)
    plain = text and text.isascii() and text.isprintable() and not set(text) & set(' "=')
    return text if plain else json.dumps(text)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _write(data: bytes) -> None:
    while data:
        try:
            data = data[os.write(2, data) :]
        except BlockingIOError:  # whoever shares the descriptor made it non-blocking
            select.select([], [2], [])
