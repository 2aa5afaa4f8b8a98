"""The `done` event of each command, open to values that later versions of the protocol may add.

Some fields have a wider type than in the protocol. pyright is instructed to accept that at each of them.
"""

from typing import Final, get_args

import msgspec

from lmwire_protocol import Command, events
from lmwire_protocol.decoding import without_nulls

_FINISH_REASONS: Final = frozenset(get_args(events.FinishReason))


class Choice(events.Choice):
    """The protocol's choice, with any finish_reason."""

    finish_reason: str  # pyright: ignore[reportIncompatibleVariableOverride]

    def __post_init__(self) -> None:
        self.finish_reason = _known_or_other(self.finish_reason)  # pyright: ignore[reportIncompatibleVariableOverride]


class ResultDone(events.ResultDone, tag="done", kw_only=True):
    """The `done` of `chat` and `generate`, with any finish_reason."""

    finish_reason: str  # pyright: ignore[reportIncompatibleVariableOverride]
    choices: list[Choice] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]

    def __post_init__(self) -> None:
        self.finish_reason = _known_or_other(self.finish_reason)  # pyright: ignore[reportIncompatibleVariableOverride]


class TranscribeDone(events.TranscribeDone, tag="done", kw_only=True):
    """The `done` of `transcribe`, with any finish_reason."""

    finish_reason: str  # pyright: ignore[reportIncompatibleVariableOverride]

    def __post_init__(self) -> None:
        self.finish_reason = _known_or_other(self.finish_reason)  # pyright: ignore[reportIncompatibleVariableOverride]


class SpeakDone(events.SpeakDone, tag="done", kw_only=True):
    """The `done` of `speak`, with any finish_reason."""

    finish_reason: str  # pyright: ignore[reportIncompatibleVariableOverride]

    def __post_init__(self) -> None:
        self.finish_reason = _known_or_other(self.finish_reason)  # pyright: ignore[reportIncompatibleVariableOverride]


class PingDone(events.PingDone, tag="done", kw_only=True):
    """The `done` of `ping`, with any state."""

    state: str  # pyright: ignore[reportIncompatibleVariableOverride]


_OPEN_TYPES: Final[dict[type[events.Done], type[events.Done]]] = {
    events.ResultDone: ResultDone,
    events.TranscribeDone: TranscribeDone,
    events.SpeakDone: SpeakDone,
    events.PingDone: PingDone,
}


def decode_done(line: bytes, command: type[Command]) -> events.Done:
    """Decode a line as the `done` of a command.

    Args:
        line: The line, without its newline.
        command: The type of the command that the line ends.

    Raises:
        msgspec.ValidationError: The line is not a `done` of this command.
    """
    done = _OPEN_TYPES.get(command.done, command.done)
    try:
        return msgspec.json.decode(line, type=done)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(msgspec.json.decode(line)), done)


def _known_or_other(finish_reason: str) -> str:
    return finish_reason if finish_reason in _FINISH_REASONS else "other"
