"""The contract of a session's event writer: it turns what happens to a request into lines."""

from typing import TYPE_CHECKING, Protocol

from lmwire_protocol.events import Done, Error, Progress

from ..engine.interface import OutputEvent
from .output_queue import OutputQueue

if TYPE_CHECKING:
    from .request_state import Request


class EventWriter(Protocol):
    """Writes a request's events. Version 1 and the bridge differ in nothing else."""

    is_serial: bool
    """One request at a time, each after the one before: the bridge."""
    plain_text: bool
    """All generated text is content: the bridge has neither reasoning nor tool calls."""

    def write(self, output: OutputQueue, request: "Request", event: OutputEvent) -> None:
        """Queue the lines of an event, if it has any.

        Args:
            output: The queue of output.
            request: The request, with the event applied to its state.
            event: What the runner reported.
        """
        ...

    def progress(self, event: Progress) -> bytes:
        """Return the line of a progress event; empty if the session has none."""
        ...

    def terminal(self, request: "Request", event: Done | Error) -> bytes:
        """Return the request's last line; empty if the session has none.

        Args:
            request: The request that ends.
            event: Its terminal.
        """
        ...
