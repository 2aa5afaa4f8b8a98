"""The interface of a reader of a process's output."""

from collections.abc import Callable
from typing import Protocol


class OutputReader(Protocol):
    """Reads a process's output on another thread than the pump."""

    def start(self, pipe: int, read: Callable[[], float | None], /) -> None:
        """Call `read` from now on, whenever the pipe has data and at the time that the last call returned.

        Args:
            pipe: The descriptor of the pipe.
            read: Returns a time of `monotonic`, `inf` if no call is due without new data, or None at the end.
        """

    def stop(self) -> None:
        """Stop the calls. May be called on any thread, and returns at once, even if the reader is busy."""
