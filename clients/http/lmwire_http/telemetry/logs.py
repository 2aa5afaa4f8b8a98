"""The log on stderr: one line per request, and errors. It never contains prompts, answers, keys or tokens of the hub.

Lines and progress are written in a thread of their own: a slow terminal or pipe must not stop the server.
"""

import io
import json
import logging
import os
import re
import select
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from math import ceil
from queue import SimpleQueue
from threading import Thread
from time import sleep
from typing import Any, Final, Literal, Protocol, TextIO, TypeAlias, cast

from lmwire_protocol.events import Progress
from lmwire_protocol.printable import one_line, printable

from ..settings import LogLevel

_HUB_TOKEN: Final = re.compile(r"\bhf_[A-Za-z0-9]{30,}", re.ASCII)
_STEP_S: Final = 0.1
_MAX_WAITING: Final = 10_000
"""Lines and changes of progress that wait for stderr. Further ones are dropped."""
_FLUSH_S: Final = 2.0
_WRITE_INTERVAL_S: Final = 0.02
_log = logging.getLogger("lmwire_http")


def join_within(thread: Thread, limit_s: float) -> None:
    """Wait until a thread has ended, or for a time.

    While the whole process stands still, such as on a busy machine or a suspended one, the thread gets nothing done.
    The wait is made of short steps, so that such a pause takes only one of them.

    Args:
        thread: The thread.
        limit_s: Longest wait, in seconds.
    """
    for _ in range(ceil(limit_s / _STEP_S)):
        thread.join(min(_STEP_S, limit_s))
        if not thread.is_alive():
            return


class ProgressBar(Protocol):
    """Shows how far one load or prefill has come."""

    def show(self, stage: str, current: int, total: int | None, unit: str) -> None:
        """Show the fields of a `progress` event."""
        ...

    def close(self) -> None:
        """Remove what is drawn."""
        ...


class ProgressArea(Protocol):
    """The last lines of a terminal, which show progress. Other lines appear above them."""

    def begin(self, label: str) -> ProgressBar:
        """Return the bar of one more load or prefill."""
        ...

    def print_above(self, text: str) -> None:
        """Write whole lines above the bars."""
        ...

    def close(self) -> None:
        """Remove all bars."""
        ...


MakeProgressArea: TypeAlias = Callable[[TextIO], ProgressArea | None]
"""Returns the progress area of a stream; None if the stream is not a terminal that can draw one."""


class StderrWriter(AbstractContextManager["StderrWriter"]):
    """Writes lines to stderr, and draws progress below them on a terminal.

    Leaving the context writes what waits, if stderr accepts it in time.

    Args:
        make_progress_area: Makes the area in which progress is drawn; None if none is.
    """

    def __init__(self, make_progress_area: MakeProgressArea | None = None) -> None:
        self._area = make_progress_area(cast("TextIO", _Stderr())) if make_progress_area else None
        self._waiting: SimpleQueue[str | Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._waiting.put(None)
        join_within(self._thread, _FLUSH_S)

    @property
    def is_full(self) -> bool:
        """Return whether 10,000 lines wait for stderr; further ones are to be dropped."""
        return self._waiting.qsize() >= _MAX_WAITING

    def write(self, lines: str) -> None:
        """Write whole lines soon."""
        self._waiting.put(lines)

    @property
    def can_draw(self) -> bool:
        """Return whether progress can be drawn."""
        return self._area is not None

    @contextmanager
    def draw_progress(self, model: str) -> Generator[Callable[[Progress], None]]:
        """Draw a bar for a load or a prefill while the block runs. Yield the function that takes its events.

        A prompt with a single event is short and gets no bar.

        Args:
            model: The model's name.
        """
        assert self._area
        bar = self._area.begin(model)
        is_long = False

        def show(event: Progress) -> None:
            nonlocal is_long
            if (is_long or event.stage != "prefill") and not self.is_full:
                self._waiting.put(partial(bar.show, event.stage, event.current, event.total, event.unit))
            is_long = True

        try:
            yield show
        finally:
            self._waiting.put(bar.close)

    def _run(self) -> None:
        more = True
        while more:
            waiting = [self._waiting.get()]
            # Take only what waits now: under constant logging this loop would never reach the write.
            waiting += [self._waiting.get() for _ in range(self._waiting.qsize())]
            more = waiting[-1] is not None
            try:
                self._write([item for item in waiting if item is not None])
                if self._area and not more:
                    self._area.close()
            except OSError:
                return  # stderr is closed
            if more:
                sleep(_WRITE_INTERVAL_S)  # requests often end together: one write is cheaper than a wake-up each

    def _write(self, items: list[str | Callable[[], None]]) -> None:
        if self._area is None:
            _write_all("".join(cast("list[str]", items)))
            return
        for item in items:
            if isinstance(item, str):
                self._area.print_above(item)
            else:
                item()


class _Stderr(io.TextIOBase):
    """The stderr stream for a progress area, without a lock that a stuck terminal would hold at the exit."""

    def fileno(self) -> int:
        """See `io.IOBase`."""
        return 2

    def isatty(self) -> bool:
        """See `io.IOBase`."""
        return os.isatty(2)

    def write(self, text: str, /) -> int:
        """See `io.TextIOBase`."""
        _write_all(text)
        return len(text)


def _write_all(text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    while data:
        try:
            data = data[os.write(2, data) :]
        except BlockingIOError:  # another process may have made the shared descriptor non-blocking
            select.select([], [2], [])


def log_facts(level: int, message: str, facts: Mapping[str, Any]) -> None:
    """Log a message with facts, each in a field of its own.

    Args:
        level: The logging level.
        message: The message.
        facts: Values by field name.
    """
    _log.log(level, message, extra={"facts": facts})


def redact(text: str, keys: Sequence[str]) -> str:
    """Return the text with every API key, and every token of the Hugging Face hub, replaced.

    Args:
        text: Text for a log or a client.
        keys: The API keys.
    """
    for key in keys:
        for written in (key, json.dumps(key)[1:-1]):
            text = text.replace(written, "[API key]")
    return _HUB_TOKEN.sub("[hub token]", text)


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
