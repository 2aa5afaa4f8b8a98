"""A command's `done`, with the values that later versions may add to it.

Fields are wider here than in the protocol, on purpose, wherever pyright is told to let an override pass.
"""

from typing import Final, get_args

import msgspec

from lmwire_protocol import Command, events
from lmwire_protocol.decoding import without_nulls

_FINISH_REASONS: Final = frozenset(get_args(events.FinishReason))


class Choice(events.Choice):
    """As the protocol's, with any finish_reason."""

    finish_reason: str

    def __post_init__(self) -> None:
        self.finish_reason = _known(self.finish_reason)  # pyright: ignore[reportIncompatibleVariableOverride]


class ResultDone(events.ResultDone, tag="done", kw_only=True):
    """As the protocol's, with any finish_reason."""

    finish_reason: str
    choices: list[Choice] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]

    def __post_init__(self) -> None:
        self.finish_reason = _known(self.finish_reason)  # pyright: ignore[reportIncompatibleVariableOverride]


class TranscribeDone(events.TranscribeDone, tag="done", kw_only=True):
    """As the protocol's, with any finish_reason."""

    finish_reason: str  # pyright: ignore[reportIncompatibleVariableOverride]

    def __post_init__(self) -> None:
        self.finish_reason = _known(self.finish_reason)  # pyright: ignore[reportIncompatibleVariableOverride]


class PingDone(events.PingDone, tag="done", kw_only=True):
    """As the protocol's, with any state."""

    state: str  # pyright: ignore[reportIncompatibleVariableOverride]


_OPEN: Final[dict[type[events.Done], type[events.Done]]] = {
    events.ResultDone: ResultDone,
    events.TranscribeDone: TranscribeDone,
    events.PingDone: PingDone,
}


def read_done(line: bytes, command: type[Command]) -> events.Done:
    """The line as the command's `done`. A value that this version does not know is no reason to refuse it.

    Raises:
        msgspec.ValidationError: it is none.
    """
    done = _OPEN.get(command.done, command.done)
    try:
        return msgspec.json.decode(line, type=done)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(msgspec.json.decode(line)), done)


def _known(finish_reason: str) -> str:
    """The value, or what an unknown one reads as."""
    return finish_reason if finish_reason in _FINISH_REASONS else "other"
