"""The log on stderr: one line per request, and errors. It never contains prompts, answers or API keys."""

import json
import logging
import os
import select
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from queue import SimpleQueue
from time import sleep
from typing import Any, Final, Literal

from ..settings import LogLevel

_MAX_WAITING_LINES: Final = 10_000
"""Lines that wait for stderr. Further lines are dropped: a slow terminal or pipe must not stop the server."""
_FLUSH_S: Final = 2.0
_WRITE_INTERVAL_S: Final = 0.02
_log = logging.getLogger("lmwire_http")


def log_facts(level: int, message: str, facts: Mapping[str, Any]) -> None:
    """Log a message with facts, each in a field of its own.

    Args:
        level: The logging level.
        message: The message.
        facts: Values by field name.
    """
    _log.log(level, message, extra={"facts": facts})


def redact(text: str, keys: Sequence[str]) -> str:
    """Return the text with every API key replaced.

    Args:
        text: Text for a log or a client.
        keys: The API keys.
    """
    for key in keys:
        for written in (key, json.dumps(key)[1:-1]):
            text = text.replace(written, "[API key]")
    return text


@contextmanager
def log_to_stderr(
    format: Literal["text", "json"], keys: Sequence[str] = (), level: LogLevel = "info"
) -> Generator[None]:
    """Write all log records, also those of libraries, to stderr while the block runs.

    Args:
        format: Format of the lines.
        keys: API keys to remove from the lines.
        level: Level of the least important lines. `debug` is for the server's own: a library's could quote a prompt.
    """
    least = logging.getLevelNamesMapping()[level.upper()]
    lines = StderrHandler(keys)
    lines.setLevel(least)
    lines.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    root = logging.getLogger()
    root.addHandler(lines)
    root.setLevel(max(least, logging.INFO))
    _log.setLevel(least)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # without "Started server process" and the like
    try:
        yield
    finally:
        root.removeHandler(lines)
        lines.close()


class StderrHandler(logging.Handler):
    """Handler that writes lines to stderr in a thread of its own.

    Args:
        keys: API keys to remove from the lines.
    """

    def __init__(self, keys: Sequence[str] = ()) -> None:
        super().__init__()
        self._keys = sorted(keys, key=len, reverse=True)
        self._waiting: SimpleQueue[str | None] = SimpleQueue()
        self._dropped = 0
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        if self._waiting.qsize() >= _MAX_WAITING_LINES:
            self._dropped += 1
            return
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            log_facts(logging.WARNING, "lines of the log were dropped before this one", {"lines": dropped})
        try:
            self._waiting.put(redact(f"{self.format(record)}\n", self._keys))
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Write the waiting lines, if stderr accepts them in time."""
        self._waiting.put(None)
        self._thread.join(_FLUSH_S)
        super().close()

    def _write(self) -> None:
        more = True
        while more:
            lines = [self._waiting.get()]
            # Take only the lines that wait now: under constant logging this loop would never reach the write.
            lines += [self._waiting.get() for _ in range(self._waiting.qsize())]
            more = lines[-1] is not None
            text = "".join([line for line in lines if line is not None])
            try:
                _write(text.encode("utf-8", "backslashreplace"))
            except OSError:
                return  # stderr is closed
            if more:
                sleep(_WRITE_INTERVAL_S)  # requests often end together: one write is cheaper than a wake-up each


class TextFormatter(logging.Formatter):
    """Formatter of lines for people: time, level, message, and `name=value` for each fact."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        facts = "".join([f" {name}={_quote(value)}" for name, value in _facts(record).items()])
        line = f"{_timestamp(record)} {record.levelname.lower()} {record.getMessage()}{facts}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """Formatter of lines for programs: one JSON object each."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        line = {
            "time": _timestamp(record),
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


def _quote(value: Any) -> str:
    """Return a value as one word, quoted if it could be taken for another fact or line."""
    text = str(value)
    plain = text and text.isascii() and text.isprintable() and not set(text) & set(' "=')
    return text if plain else json.dumps(text)


def _timestamp(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _write(data: bytes) -> None:
    while data:
        try:
            data = data[os.write(2, data) :]
        except BlockingIOError:  # another process may have made the shared descriptor non-blocking
            select.select([], [2], [])
