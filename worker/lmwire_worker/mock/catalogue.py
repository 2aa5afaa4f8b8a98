"""The named faults of `lmwire mock --fault NAME[:PARAMETER=VALUE,…]`, with their parameters.

An *answer* is the reply to a `generate` or `chat` of a version 1 session.
"""

from typing import Any, Final, NamedTuple

from lmwire_protocol import CODES
from lmwire_protocol.command_line import suggestion

SIGNALS: Final = ("KILL", "ABRT")

_DEATH: Final[dict[str, Any]] = {"signal": "KILL", "exit": None}


class Fault(NamedTuple):
    """One way to misbehave."""

    summary: str
    """The effect that the host sees, in one line."""
    parameters: dict[str, Any] = {}
    """The parameters with their defaults: a whole number, a word, or None."""


class Chosen(NamedTuple):
    """A fault that the command line asks for, with all of its parameters."""

    name: str
    parameters: dict[str, Any]


FAULTS: Final[dict[str, Fault]] = {
    # Starting
    "crash-start": Fault("dies before it has read or written anything", _DEATH),
    "garbage-before-hello": Fault("prints a banner, lines of text, before its first event", {"bytes": 100}),
    "no-hello": Fault("never answers hello; serves everything else"),
    "newer-version": Fault("speaks version 2 alone: refuses a hello for version 1, and exits 76"),
    "wrong-version": Fault("answers hello with version 2, whatever the host speaks"),
    # Loading
    "slow-load": Fault("takes this long to load, with progress", {"seconds": 10}),
    "failed-load": Fault("refuses every load", {"code": "bad_model"}),
    # Dying
    "crash-mid-line": Fault("dies halfway through the line of a token event", {"after": 3, **_DEATH}),
    "crash-mid-stream": Fault(
        "dies after this many token events, or before an answer's terminal", {"after": 3, **_DEATH}
    ),
    "crash-after-terminal": Fault("dies after the terminal of an answer", _DEATH),
    # Polluting the stream
    "garbage-between-events": Fault("prints a line of text after the first token event of an answer"),
    "garbage-half-line": Fault("prints text without a newline before the first token event of an answer"),
    "long-line": Fault("makes the first token event of an answer a line of this length", {"bytes": 1024 * 1024 + 1}),
    # Flow
    "burst": Fault("answers with this many tokens, or max_tokens if lower, as fast as it can", {"tokens": 100_000}),
    "stall": Fault("its engine hangs after this many tokens: ping works, cancel changes nothing", {"after": 3}),
    "stderr-flood": Fault(
        "writes this much to stderr before every terminal, and waits for it to be read", {"bytes": 1 << 20}
    ),
    # Not ending
    "ignore-quit": Fault("ignores quit; ends when stdin ends"),
    "ignore-eof": Fault("ignores quit and the end of stdin; ends on SIGTERM"),
    "ignore-sigterm": Fault("ignores quit, the end of stdin, SIGTERM and SIGHUP; only SIGKILL ends it"),
    "grandchild": Fault("starts a process of its group that holds its pipes open for this long", {"seconds": 60}),
    # Against the order, and beyond this version
    "duplicate-terminal": Fault("writes the terminal of an answer twice"),
    "event-after-terminal": Fault("writes a token event after the terminal of an answer"),
    "unknown-id": Fault("writes a token event and a terminal with an unknown id, amid an answer"),
    "unknown-event": Fault("writes an event of an unknown kind, amid an answer"),
    "unknown-fields": Fault("adds unknown fields to every event, and to the objects in it"),
    "unknown-values": Fault("writes unknown finish_reasons, channels, error codes, stages, units and states"),
}
"""Every fault by its name."""


def choose(text: str) -> Chosen:
    """Parse the value of `--fault`.

    Raises:
        ValueError: The fault, parameter or value does not exist.
    """
    name, _, settings = text.partition(":")
    if name not in FAULTS:
        raise ValueError(f"{name!r} is not a fault; --list-faults lists them{suggestion(name, FAULTS)}")
    parameters = dict(FAULTS[name].parameters)
    for setting in filter(None, settings.split(",")):
        key, _, value = setting.partition("=")
        if key not in parameters:
            known = ", ".join(parameters) or "none"
            raise ValueError(f"{name} has no parameter {key!r}; there are: {known}{suggestion(key, parameters)}")
        parameters[key] = _read(key, value)
    return Chosen(name, parameters)


def _read(key: str, value: str) -> str | int:
    words = {"signal": SIGNALS, "code": tuple(CODES)}.get(key)
    if words is not None:
        if value not in words:
            raise ValueError(f"{key} is one of {', '.join(words)}, not {value!r}")
        return value
    if not value.isdecimal():
        raise ValueError(f"{key} is a whole number, not {value!r}")
    return int(value)
