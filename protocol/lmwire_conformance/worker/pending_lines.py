"""Lines with an id that have no terminal yet: a terminal is assigned to one of them, and checked against it."""

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from lmwire_protocol import CLIENT_CODES, CODES, Command, Generation, Load, RequestError, Tokenize, limits
from lmwire_protocol.events import Error

from ..violation import Violation
from .answers import ReceivedAnswers
from .line_checks import json_bytes

RULES: Final = ("B-4", "F-10", "I-5", "#errors")
"""The rules that this module checks on every terminal of every run."""

_LINE_ERRORS: Final = {"parse_error", "line_too_long", "unknown_command"}
"""Codes that a valid line never gets."""
_FILE_ERRORS: Final = {"model_not_found", "bad_model"}
"""Codes of a load whose files cannot be loaded."""
_REFUSALS: Final = {"invalid_request", "busy", "draining", "unsupported_protocol"}
"""Codes of a load that never started, and thus reports nothing about the model."""


@dataclass
class PendingLine:
    """A line with a usable id that has no terminal yet."""

    id: str
    command: Command | RequestError
    """The command, or the error with which the line must be refused."""
    must_be_answered: bool
    """True if the worker must answer the line before it ends."""
    sent_at: float
    in_flight: int
    """Number of requests that the worker may have had in work when the line was sent."""
    progress: int = 0
    """Number of progress events so far."""
    answers: ReceivedAnswers = field(init=False)

    def __post_init__(self) -> None:
        self.answers = ReceivedAnswers(self.command if isinstance(self.command, Generation | Tokenize) else None)

    @property
    def uses_engine(self) -> bool:
        """Return whether the engine of a correct worker has the request until its terminal."""
        return isinstance(self.command, Command) and not self.command.out_of_band

    @property
    def expected(self) -> str:
        """The command's name, or the code of the expected error."""
        return self.command.code if isinstance(self.command, RequestError) else self.command.name


def line_ended_by_done(pending: list[PendingLine], value: dict[str, Any], line: bytes) -> PendingLine:
    """Return the pending line that a `done` ends.

    Args:
        pending: The pending lines with the id of the `done`.
        value: The fields of the `done`.
        line: The `done` as the worker wrote it.

    Raises:
        Violation: It can end none of them.
    """
    why = f"an error {pending[0].expected}, since that line is refused"
    rule = "F-10"
    for candidate in pending:
        if isinstance(candidate.command, RequestError):
            continue
        try:
            msgspec.convert(value, candidate.command.done)
        except msgspec.ValidationError as error:
            why, rule = f"a valid done of {candidate.expected}: {error}", f"#{candidate.expected}"
        else:
            return candidate
    raise Violation((rule,), why, line)


def line_ended_by_error(pending: list[PendingLine], error: Error, line: bytes) -> PendingLine:
    """Return the pending line that an `error` ends.

    Args:
        pending: The pending lines with the id of the error.
        error: The error.
        line: The error as the worker wrote it.

    Raises:
        Violation: It can end none of them, or it is not a valid error.
    """
    _check_error(error, line)
    for candidate in pending:
        if candidate.expected == error.code:
            return candidate
    for candidate in pending:
        if isinstance(candidate.command, Command) and error.code not in _LINE_ERRORS:
            if isinstance(candidate.command, Load) and error.code not in _REFUSALS:
                _check_failed_load(error, line)
            return candidate
    first = pending[0]
    expected = "an answer, since that line is valid" if isinstance(first.command, Command) else first.expected
    raise Violation(("F-10", "I-5"), expected, line)


def _check_error(error: Error, line: bytes) -> None:
    if error.code in CLIENT_CODES:
        raise Violation(("#errors",), "a code that workers use", line)
    if error.code in CODES and error.code != "model_not_found" and error.retryable != CODES[error.code][0]:
        raise Violation(("#errors",), f"the value of `retryable` that the code {error.code} has", line)
    if json_bytes(error.error) > limits.ERROR_BYTES:
        raise Violation(("F-14",), f"a sentence of at most {limits.ERROR_BYTES} bytes", line)


def _check_failed_load(error: Error, line: bytes) -> None:
    if error.loaded is None:
        raise Violation(("B-4",), "a failed load with `loaded`", line)
    if error.code in _FILE_ERRORS and error.field is None:
        raise Violation(("B-4",), "a failed load with the `field` of what cannot be loaded", line)
