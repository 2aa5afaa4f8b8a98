"""A line with an id, from its writing to its terminal: which one a terminal ends, and whether it may end so."""

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from lmwire_protocol import CLIENT_CODES, CODES, Command, Generation, Load, RequestError, Tokenize, limits
from lmwire_protocol.events import Error

from ..violation import Violation
from .answers import ReceivedAnswers
from .line_checks import json_bytes

RULES: Final = ("B-4", "F-10", "I-5", "#errors")
"""The rules that are checked here, on every terminal of every run."""

_REFUSED: Final = {"parse_error", "line_too_long", "unknown_command"}
"""Codes that a line without a fault never gets."""
_OF_FILES: Final = {"model_not_found", "bad_model"}
"""Codes of a load that is given files which do not load."""
_TURNED_AWAY: Final = {"invalid_request", "busy", "draining", "unsupported_protocol"}
"""Codes of a load that never began, and so has nothing to say about the model."""


@dataclass
class PendingLine:
    """A line with a usable id, until its terminal."""

    id: str
    command: Command | RequestError
    """What it asks for, or how it must be refused."""
    must_be_answered: bool
    """Whether the worker must have answered it by its end."""
    sent_at: float
    in_flight: int
    """Requests that the worker may still have worked on when it was sent."""
    progress: int = 0
    answers: ReceivedAnswers = field(init=False)

    def __post_init__(self) -> None:
        self.answers = ReceivedAnswers(self.command if isinstance(self.command, Generation | Tokenize) else None)

    @property
    def uses_engine(self) -> bool:
        """Whether the engine has it, if all is right, until its terminal."""
        return isinstance(self.command, Command) and not self.command.out_of_band

    @property
    def expected(self) -> str:
        """The command's name, or the code of the refusal."""
        return self.command.code if isinstance(self.command, RequestError) else self.command.name


def line_ended_by_done(uses: list[PendingLine], value: dict[str, Any], line: bytes) -> PendingLine:
    """The use that a `done` ends.

    Raises:
        Violation: none of them can end so.
    """
    why = f"an error {uses[0].expected}, for that line is refused"
    rule = "F-10"
    for use in uses:
        if isinstance(use.command, RequestError):
            continue
        try:
            msgspec.convert(value, use.command.done)
        except msgspec.ValidationError as error:
            why, rule = f"a valid done of {use.expected}: {error}", f"#{use.expected}"
        else:
            return use
    raise Violation((rule,), why, line)


def line_ended_by_error(uses: list[PendingLine], error: Error, line: bytes) -> PendingLine:
    """The use that an `error` ends.

    Raises:
        Violation: none of them can end so, or the error is not one of the protocol's.
    """
    if error.code in CLIENT_CODES:
        raise Violation(("#errors",), "a code that workers use", line)
    if error.code in CODES and error.code != "model_not_found" and error.retryable != CODES[error.code][0]:
        raise Violation(("#errors",), f"`retryable` as the code {error.code} has it", line)
    if json_bytes(error.error) > limits.ERROR_BYTES:
        raise Violation(("F-14",), f"a sentence of at most {limits.ERROR_BYTES} bytes", line)
    for use in uses:
        if use.expected == error.code:
            return use
    for use in uses:
        if isinstance(use.command, Command) and error.code not in _REFUSED:
            began = isinstance(use.command, Load) and error.code not in _TURNED_AWAY
            if began and error.loaded is None:
                raise Violation(("B-4",), "a failed load that says whether a model is `loaded`", line)
            if began and error.code in _OF_FILES and error.field is None:
                raise Violation(("B-4",), "a failed load that names the `field` of what does not load", line)
            return use
    asked = uses[0]
    expected = "an answer, for that line has no fault" if isinstance(asked.command, Command) else asked.expected
    raise Violation(("F-10", "I-5"), expected, line)
