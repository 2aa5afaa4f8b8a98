"""The argument parser of all commands.

`lmwire worker` alone reads its options without it: argparse would delay its start.
"""

import argparse
from collections.abc import Sequence
from typing import Any, Final, NoReturn, cast

from .flag import HelpFormatter
from .similar_names import suggestion, unrecognized

USAGE: Final = 64
"""Exit code for wrong usage, as in sysexits.h."""


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
