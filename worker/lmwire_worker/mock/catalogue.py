"""The named faults: what `lmwire mock --fault NAME[:PARAMETER=VALUE,…]` can do wrong, and how far it can be tuned.

Where a fault happens "in an answer" it is about `generate` and `chat`.
"""

from typing import Final, NamedTuple

SIGNALS: Final = ("KILL", "ABRT")
DEATH: Final = {"signal": "KILL", "exit": None}
"""How a crash ends the process: by `signal` (KILL or ABRT), or by itself when `exit` gives a code."""


class Fault(NamedTuple):
    """One way to misbehave."""

    summary: str
    """What the host sees, in a line."""
    parameters: dict[str, str | int | None] = {}
    """What can be set, with its default."""


FAULTS: Final[dict[str, Fault]] = {
    # Starting
    "crash-start": Fault("dies before it has read or written anything", DEATH),
    "garbage-before-hello": Fault("prints a banner of text lines before its first event", {"bytes": 100}),
    "no-hello": Fault("never answers hello; serves everything else"),
    "newer-version": Fault("speaks version 2 alone: refuses a hello for version 1, and exits 76"),
    "wrong-version": Fault("answers hello with version 2, whatever the host speaks"),
    # Loading
    "slow-load": Fault("takes its time to load, with progress in every tenth of it", {"seconds": 10}),
    "failed-load": Fault("refuses every load", {"code": "bad_model"}),
    # Dying
    "crash-mid-line": Fault("dies halfway through the line of a token event", {"after": 3, **DEATH}),
    "crash-mid-stream": Fault(
        "dies after so many token events, and in any case before the terminal", {"after": 3, **DEATH}
    ),
    "crash-after-terminal": Fault("dies after the terminal of an answer", DEATH),
    # Polluting the stream
    "garbage-between-events": Fault("prints a line of text behind the first token event of an answer"),
    "garbage-half-line": Fault("prints text without a newline, so that the next event is glued to it"),
    "long-line": Fault(
        "writes a token event in a line of this length, newline not counted", {"bytes": 1024 * 1024 + 1}
    ),
    # Flow
    "burst": Fault("answers with this many tokens, as fast as it can", {"tokens": 100_000}),
    "stall": Fault("its engine hangs after so many tokens: ping is answered, cancel changes nothing", {"after": 3}),
    "stderr-flood": Fault(
        "writes this much to stderr before each event, and waits until it is read", {"bytes": 4 << 20}
    ),
    # Not ending
    "ignore-quit": Fault("does not read quit; ends when stdin ends"),
    "ignore-eof": Fault("ignores quit and the end of stdin; ends on SIGTERM"),
    "ignore-sigterm": Fault("ignores quit, the end of stdin, SIGTERM and SIGHUP; only SIGKILL ends it"),
    "grandchild": Fault("starts a process of its group that keeps its pipes open after it", {"seconds": 60}),
    # Breaking the order, or growing beyond this version
    "duplicate-terminal": Fault("writes the terminal of an answer twice"),
    "event-after-terminal": Fault("writes a token event behind the terminal of an answer"),
    "unknown-id": Fault("writes a token event and a terminal for an id that nobody sent, amid an answer"),
    "unknown-event": Fault("writes an event of an unknown kind, amid an answer"),
    "unknown-fields": Fault("adds unknown fields to every event, and to the objects in it"),
    "unknown-values": Fault("ends answers with an unknown finish_reason; errors with an unknown code"),
}
"""Every fault by its name."""
