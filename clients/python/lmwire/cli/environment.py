"""Options of a command from environment variables, by the convention of click's `auto_envvar_prefix`.

With the prefix `LMWIRE_SERVE`, the variable of `--max-queue` is `LMWIRE_SERVE_MAX_QUEUE`. The names come from the
parser, so each new option has a variable. https://click.palletsprojects.com/en/stable/options/#values-from-environment-variables
"""

import argparse
import difflib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_TRUE: Final = frozenset({"1", "true", "yes", "on", "t", "y"})
_FALSE: Final = frozenset({"0", "false", "no", "off", "f", "n"})
_APPEND: Final[type[argparse.Action]] = argparse._AppendAction  # pyright: ignore[reportPrivateUsage]


class EnvironmentParser(argparse.ArgumentParser):
    """An argparse parser whose options can also come from environment variables.

    Args:
        environment_prefix: The start of the variables' names, without the last underscore.
        options: Options of `argparse.ArgumentParser`.
    """

    def __init__(self, *, environment_prefix: str, **options: Any) -> None:
        super().__init__(**options)
        self.environment_prefix = environment_prefix
        self._sources: dict[str, str] = {}

    def variable_of(self, action: argparse.Action) -> str:
        """Return the name of the variable that sets an option or a positional argument."""
        return f"{self.environment_prefix}_{_name_of(action).lstrip('-').replace('-', '_').upper()}"

    def parse_with_environment(self, argv: Sequence[str], environment: Mapping[str, str]) -> argparse.Namespace:
        """Return the arguments. The command line wins over the environment. An empty variable counts as absent.

        Exit as `parse_args` does if an argument or a variable is invalid.

        Args:
            argv: The command line, without the program's name.
            environment: The environment variables.
        """
        texts = {action: environment.get(self.variable_of(action), "") for action in self._settable()}
        present = {action: text for action, text in texts.items() if text.strip()}
        for action in present:
            action.required = False
        typed = vars(self.parse_args(argv, argparse.Namespace(**dict.fromkeys(action.dest for action in texts))))
        used = {action: text for action, text in present.items() if typed[action.dest] in (None, [])}
        self._sources = {_name_of(action): self.variable_of(action) for action in used}
        options = [word for action, text in used.items() if action.option_strings for word in self._words(action, text)]
        names = [
            word for action, text in used.items() if not action.option_strings for word in self._words(action, text)
        ]
        return self.parse_args([*options, *argv, *(["--", *names] if names else [])])

    def unknown_variables(self, environment: Mapping[str, str]) -> list[str]:
        """Return a sentence for each variable that has the prefix and sets no option, such as a misspelt one."""
        known = {self.variable_of(action) for action in self._settable()}
        start = f"{self.environment_prefix}_"
        return [
            f"${name} sets no option of {self.prog}{_suggestion(name, known)}"
            for name in sorted(environment)
            if name.startswith(start) and name not in known
        ]

    def add_sources(self, message: str) -> str:
        """Return an error message with the variables that set the options in it."""
        notes = [
            f"{option} is set by ${variable}"
            for option, variable in self._sources.items()
            if re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", message)
        ]
        return f"{message} ({', '.join(notes)})" if notes else message

    def _settable(self) -> Iterator[argparse.Action]:
        """Yield the options and positional arguments, without `--help` and former names."""
        return (action for action in self._actions if argparse.SUPPRESS not in (action.help, action.default))

    def _words(self, action: argparse.Action, text: str) -> list[str]:
        """Return the words of the command line that mean the same as a variable's text."""
        option = _name_of(action)
        if _is_flag(action):
            return [option] if self._is_true(action, text) else []
        values = self._split(action, text) if _is_list(action) else [text]
        return [f"{option}={value}" for value in values] if action.option_strings else values

    def _is_true(self, action: argparse.Action, text: str) -> bool:
        word = text.strip().lower()
        if word not in _TRUE | _FALSE:
            self.error(f"argument {_name_of(action)}: {text!r} is not 1 or 0 (true or false, yes or no, on or off)")
        return word in _TRUE

    def _split(self, action: argparse.Action, text: str) -> list[str]:
        try:
            return shlex.split(text)
        except ValueError as error:
            self.error(f"argument {_name_of(action)}: {error}: quote values with spaces as in a shell")


def _name_of(action: argparse.Action) -> str:
    """Return the name of an argument as error messages have it."""
    return action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest)


def _is_flag(action: argparse.Action) -> bool:
    return action.nargs == 0


def _is_list(action: argparse.Action) -> bool:
    return isinstance(action, _APPEND) or action.nargs in ("*", "+")


def _suggestion(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
    return f"; did you mean ${near[0]}?" if near else ""
