"""Commands about the session and the worker: `hello`, `cancel`, `ping`, `stats` and `quit`."""

from typing import Annotated, Literal

from msgspec import Meta

from .. import events
from ..limits import CLIENT_BYTES, PROTOCOL_VERSION
from .base import Command, Positive


class Hello(Command, frozen=True):
    """Open a session: agree on a protocol version and describe the worker. Optional; answered at once."""

    name = "hello"
    done = events.HelloDone
    out_of_band = True

    protocol: tuple[Positive, Positive] = (PROTOCOL_VERSION, PROTOCOL_VERSION)
    """The lowest and the highest version that the host speaks."""
    client: Annotated[str, Meta(extra_json_schema={"maxLength": CLIENT_BYTES})] = ""
    """The host's name and version, for the worker's log; at most 128 bytes."""
    host_pid: Positive | None = None
    """An ancestor process of the worker. When it ends, the worker ends. Refused if it is not an ancestor."""

    def __post_init__(self) -> None:
        if self.protocol[0] > self.protocol[1]:
            raise ValueError("protocol: the first version must not be above the second")
        if len(self.client.encode()) > CLIENT_BYTES:
            raise ValueError(f"client: must be a string of 0 to {CLIENT_BYTES:,} bytes")


class Cancel(Command, frozen=True):
    """End one request, or all. Exactly one of the two fields is given."""

    name = "cancel"
    done = events.CancelDone
    out_of_band = True

    target: Annotated[str, Meta(min_length=1)] | None = None
    """The id of the request to end. A hello, cancel, ping, stats or quit cannot be cancelled."""
    all: Literal[True] | None = None
    """End every request that can be cancelled."""

    def __post_init__(self) -> None:
        if (self.target is None) == (self.all is None):
            raise ValueError("target: give exactly one of `target` and `all`")


class Ping(Command, frozen=True):
    """Ask whether the worker is alive and makes progress."""

    name = "ping"
    done = events.PingDone
    out_of_band = True


class Stats(Command, frozen=True):
    """Ask for the worker's counters."""

    name = "stats"
    done = events.StatsDone
    out_of_band = True


class Quit(Command, frozen=True):
    """End the worker. Its `done` is the last line."""

    name = "quit"
    done = events.QuitDone
    out_of_band = True

    drain: bool = False
    """Let unfinished requests finish instead of cancelling them."""
