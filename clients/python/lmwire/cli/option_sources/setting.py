"""The value that a variable or the config file gives an option, as words of the command line."""

import argparse
import shlex
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast

from lmwire_protocol.command_line import Flag

_TRUE: Final = frozenset({"1", "true", "yes", "on", "t", "y"})
_FALSE: Final = frozenset({"0", "false", "no", "off", "f", "n"})
_APPEND: Final[type[argparse.Action]] = argparse._AppendAction  # pyright: ignore[reportPrivateUsage]
_TEXT_TYPES: Final = (None, str, Path)


class WrongType(ValueError):
    """A value of the wrong type. The message does not name the option."""


class Setting(NamedTuple):
    """An option's value from one source."""

    value: Any
    """The variable's text, or the file's TOML value."""
    source: Literal["environment", "config"]
    origin: str
    """The variable, such as `$LMWIRE_SERVE_PORT`, or the key, the table and the path of the file."""

    def plain(self, action: argparse.Action) -> Any:
        """Return the value as the config file would have it: a variable's text of a flag or a list is read.

        Args:
            action: The option or positional argument.

        Raises:
            WrongType: The value does not have the option's type.
        """
        if self.source == "environment":
            if action.nargs == 0:
                return _read_flag(self.value)
            if is_list(action):
                return _split(self.value)
        return self.value

    def words(self, action: argparse.Action) -> list[str]:
        """Return the words of the command line that mean the same.

        Args:
            action: The option or positional argument.

        Raises:
            WrongType: The value does not have the option's type.
        """
        from_text = self.source == "environment"
        option = name_of(action)
        if action.nargs == 0:
            is_on = _read_flag(self.value) if from_text else _check_flag(self.value)
            return [cast("Flag", action).word(on=is_on)]
        if is_list(action):
            values = _split(self.value) if from_text else _check_list(action, self.value)
        else:
            values = [self.value if from_text else _check_scalar(action, self.value)]
        return [f"{option}={value}" for value in values] if action.option_strings else values


def name_of(action: argparse.Action) -> str:
    """Return the name of an argument as error messages have it."""
    if isinstance(action, Flag):
        return action.name
    return action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest)


def key_of(action: argparse.Action) -> str:
    """Return the key of an option or positional argument in the config file, such as `max-queue`."""
    return name_of(action).lstrip("-").lower()


def is_list(action: argparse.Action) -> bool:
    """Return whether an option or positional argument takes several values."""
    return isinstance(action, _APPEND) or action.nargs in ("*", "+")


def _read_flag(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise WrongType(f"{text!r} is not 1 or 0 (true or false, yes or no, on or off)")
    return word in _TRUE


def _check_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise WrongType(f"{value!r} is not true or false")
    return value


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise WrongType(f"{error}: quote values with spaces as in a shell") from error


def _check_list(action: argparse.Action, value: object) -> list[str]:
    if not isinstance(value, list):
        raise WrongType(f'{value!r} is not an array: write ["…", "…"]')
    return [_check_scalar(action, item) for item in cast("list[object]", value)]


def _check_scalar(action: argparse.Action, value: object) -> str:
    """Return the text of a TOML value. The option's own type then checks the text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongType(f"{value!r} is not {'text' if action.type in _TEXT_TYPES else 'text or a number'}")
    if action.type in _TEXT_TYPES:
        raise WrongType(f"{value!r} is not text: write it in quotes")
    return str(value)
