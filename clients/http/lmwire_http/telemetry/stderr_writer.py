"""Lines and progress on stderr, written in a thread of its own: a slow terminal or pipe must not stop the server."""

import io
import os
import select
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from queue import SimpleQueue
from time import sleep
from typing import Final, Protocol, TextIO, TypeAlias, cast

from lmwire_protocol.events import Progress

from .bounded_join import join_within

_MAX_WAITING: Final = 10_000
"""Lines and changes of progress that wait for stderr. Further ones are dropped."""
_FLUSH_S: Final = 2.0
_WRITE_INTERVAL_S: Final = 0.02


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
        self._area = make_progress_area and make_progress_area(cast("TextIO", _Stderr()))
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
            _write("".join(cast("list[str]", items)))
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
        _write(text)
        return len(text)


def _write(text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    while data:
        try:
            data = data[os.write(2, data) :]
        except BlockingIOError:  # another process may have made the shared descriptor non-blocking
            select.select([], [2], [])
