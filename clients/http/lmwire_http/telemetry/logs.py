"""The log on stderr: one line per request, and errors. It never contains prompts, answers or API keys."""

import json
import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

from lmwire_protocol.printable import one_line, printable

from ..settings import LogLevel
from .stderr_writer import StderrWriter

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
    writer: StderrWriter, format: Literal["text", "json"], keys: Sequence[str] = (), level: LogLevel = "info"
) -> Generator[None]:
    """Write all log records, also those of libraries, to stderr while the block runs.

    Args:
        writer: Writes the lines.
        format: Format of the lines.
        keys: API keys to remove from the lines.
        level: Level of the least important lines. `debug` is for the server's own: a library's could quote a prompt.
    """
    least = logging.getLevelNamesMapping()[level.upper()]
    lines = StderrHandler(writer, keys)
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
    """Handler that writes lines to stderr. It drops those that stderr does not take, and logs their number.

    Args:
        writer: Writes the lines.
        keys: API keys to remove from the lines.
    """

    def __init__(self, writer: StderrWriter, keys: Sequence[str] = ()) -> None:
        super().__init__()
        self._writer = writer
        self._keys = sorted(keys, key=len, reverse=True)
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        if self._writer.is_full:
            self._dropped += 1
            return
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            log_facts(logging.WARNING, "lines of the log were dropped before this one", {"lines": dropped})
        try:
            self._writer.write(redact(f"{self.format(record)}\n", self._keys))
        except Exception:
            self.handleError(record)


class TextFormatter(logging.Formatter):
    """Formatter of lines for people: time, level, message, and `name=value` for each fact."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        facts = "".join([f" {name}={_quote(value)}" for name, value in _facts(record).items()])
        line = f"{_timestamp(record)} {record.levelname.lower()} {one_line(record.getMessage())}{facts}"
        return f"{line}\n{printable(self.formatException(record.exc_info))}" if record.exc_info else line


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
