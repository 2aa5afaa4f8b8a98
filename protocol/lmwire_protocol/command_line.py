"""The command line of all commands of lmwire: its parser, its flags, and names that resemble a misspelt one.

It imports argparse and little else, so that every help is quick. `lmwire worker` alone reads its options without the
parser: argparse would delay its start.
"""

import argparse
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn, cast

USAGE: Final = 64
"""Exit code for wrong usage, as in sysexits.h."""
_COLUMNS: Final = 80
"""Width of a stdout that is not a terminal."""


class Flag(argparse.BooleanOptionalAction):
    """A flag such as `--json`, with the form `--no-json`. The last one on the command line wins.

    The help has both forms as git's has them: `--[no-]json`.
    """

    def __init__(
        self, option_strings: Sequence[str], dest: str, default: bool | None = False, help: str | None = None
    ) -> None:
        super().__init__(option_strings, dest, default=default)
        self.help = help  # if argparse had it, Python before 3.13 would add the default

    @property
    def name(self) -> str:
        """The form that turns the flag on."""
        return self.option_strings[0]

    def word(self, *, on: bool) -> str:
        """Return the form that turns the flag on or off."""
        return self.option_strings[0 if on else 1]

    def format_usage(self) -> str:
        """Return both forms as one word of the help."""
        return f"--[no-]{self.name.removeprefix('--')}"


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """A formatter that keeps the line breaks of descriptions, and writes both forms of a flag as one."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{"width": _columns() - 2, **options})

    def _format_action_invocation(self, action: argparse.Action) -> str:
        return action.format_usage() if isinstance(action, Flag) else super()._format_action_invocation(action)


def _columns() -> int:
    """Return the width of the terminal as argparse finds it, but without shutil, which each argument would import."""
    with suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    with suppress(AttributeError, ValueError, OSError):  # stdout is closed, or is not a terminal
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or _COLUMNS  # pyright: ignore[reportOptionalMemberAccess]
    return _COLUMNS


class ArgumentParser(argparse.ArgumentParser):
    """A parser that names what resembles a misspelt argument, and exits as sysexits.h says on wrong usage."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", HelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse as argparse does, but refuse unknown arguments here: a parser above knows no similar options."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(unrecognized(unknown, self._option_string_actions))
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            choices = [str(choice) for choice in cast("Sequence[object]", action.choices)]
            raise argparse.ArgumentError(action, f"{error.message}{suggestion(str(value), choices)}") from None

    def error(self, message: str) -> NoReturn:
        """Print the message to stderr, and exit."""
        self.exit(USAGE, f"{self.prog}: {message}\nSee {self.prog} --help\n")


def suggestion(name: str, known: Collection[str], mark: str = "", cutoff: float = 0.6) -> str:
    """Return the end of an error message that names the closest known name; empty if none is close.

    Args:
        name: The misspelt name.
        known: The names that exist.
        mark: What to write before the name, such as `$`.
        cutoff: The similarity that counts as close, from 0 to 1.
    """
    import difflib  # only a mistake needs it, and the help must be quick

    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"; did you mean {mark}{near[0]}?" if near else ""


def unrecognized(arguments: Sequence[str], known: Collection[str]) -> str:
    """Return the error message for arguments that a command does not have.

    Args:
        arguments: The words of the command line.
        known: The options of the command.
    """
    options = (word.partition("=")[0] for word in arguments if word.startswith("-"))
    hints = (suggestion(option, known) for option in options)
    return f"unrecognized arguments: {' '.join(arguments)}{next(filter(None, hints), '')}"


def format_size(count: int) -> str:
    """Return a number of bytes as text in decimal units, such as "1.5 GB"."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
