"""A parser whose options can also come from environment variables and from the config file.

The names come from the parser, so each new option has both. `--max-queue` of `lmwire serve` is
`LMWIRE_SERVE_MAX_QUEUE`, by the convention of click's `auto_envvar_prefix`, and `max-queue` in the table `[serve]`.
https://click.palletsprojects.com/en/stable/options/#values-from-environment-variables
"""

import argparse
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from lmwire_protocol.command_line import ArgumentParser, suggestion

from .config_file import ConfigFile, InvalidConfigFile
from .setting import Setting, WrongType, key_of, name_of

NO_CONFIG: Final = ConfigFile(Path(), {})
SECRETS: Final = frozenset({"api-key"})
"""Keys whose values other users must not see."""


class SourcedParser(ArgumentParser):
    """A parser of one command, such as `lmwire bench pipe`, with further sources of its options."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.shared_variables: dict[argparse.Action, str] = {}
        """Variables that several commands read, such as LMWIRE_MODEL. A command's own variable wins."""
        self._used: dict[argparse.Action, Setting] = {}

    @property
    def command(self) -> tuple[str, ...]:
        """The command's name, such as `("bench", "pipe")`: that of its table in the config file."""
        return tuple(self.prog.split()[1:])

    @property
    def environment_prefix(self) -> str:
        """The start of the variables' names, without the last underscore."""
        return _variable(self.prog)

    def variable_of(self, action: argparse.Action) -> str:
        """Return the name of the variable that sets an option or a positional argument."""
        return f"{self.environment_prefix}_{_variable(key_of(action))}"

    def default_of(self, action: argparse.Action) -> Any:
        """Return the value of an option that no source sets; None if there is none."""
        return action.default

    def settable(self) -> Iterator[argparse.Action]:
        """Yield the arguments that have other sources: options, and positional arguments that may be left out."""
        for action in self._actions:
            may_be_absent = action.option_strings or action.nargs in ("?", "*")
            if may_be_absent and argparse.SUPPRESS not in (action.help, action.default):
                yield action

    def settings(self, environment: Mapping[str, str], config: ConfigFile) -> dict[argparse.Action, Setting]:
        """Return what the environment and the file set. The environment wins. An empty variable counts as absent.

        Args:
            environment: The environment variables.
            config: The config file.

        Raises:
            InvalidConfigFile: The command's table has an unknown key.
        """
        actions = {key_of(action): action for action in self.settable()}
        config.check_names(self.command, actions)
        where = f"in [{'.'.join(self.command)}] of {config.path}"
        table = config.table(self.command)
        found = {actions[key]: Setting(value, "config", f"{key} {where}") for key, value in table.items()}
        for action in actions.values():
            for variable in filter(None, (self.shared_variables.get(action), self.variable_of(action))):
                if (text := environment.get(variable, "")).strip():
                    found[action] = Setting(text, "environment", f"${variable}")
        return found

    def parse_with_sources(
        self, argv: Sequence[str], environment: Mapping[str, str], config: ConfigFile = NO_CONFIG
    ) -> argparse.Namespace:
        """Return the arguments. The command line wins over the environment, which wins over the file.

        Exit as `parse_args` does if an argument, a variable or a key of the file is invalid.

        Args:
            argv: The command line, after the command's name.
            environment: The environment variables.
            config: The config file.
        """
        try:
            settings = self.settings(environment, config)
        except InvalidConfigFile as error:
            self.error(str(error))
        for action in settings:
            action.required = False
        with self._without_values():
            typed = vars(self.parse_args(argv))
        self._used = {action: setting for action, setting in settings.items() if typed[action.dest] in (None, [])}
        options: list[str] = []
        names: list[str] = []
        for action, setting in self._used.items():
            (options if action.option_strings else names).extend(self._words(action, setting))
        return self.parse_args([*options, *argv, *(["--", *names] if names else [])])

    def check(self, action: argparse.Action, setting: Setting) -> None:
        """Check that an option accepts a value.

        Args:
            action: The option or positional argument.
            setting: The value and its source.

        Raises:
            WrongType: The value does not have the option's type.
            argparse.ArgumentError: The option refuses the value.
        """
        words = setting.words(action)
        if action.nargs != 0:
            values = [word.partition("=")[2] for word in words] if action.option_strings else words
            for value in values:
                item = self._get_value(action, value)
                self._check_value(action, item)

    def source_warnings(self, environment: Mapping[str, str], config: ConfigFile = NO_CONFIG) -> list[str]:
        """Return a sentence for each misspelt variable, and one if other users can read a key in the config file.

        Args:
            environment: The environment variables.
            config: The config file.
        """
        known = {self.variable_of(action) for action in self.settable()}
        start = f"{self.environment_prefix}_"
        warnings = [
            f"${name} sets no option of {self.prog}{suggestion(name, known, '$', 0.85)}"
            for name in sorted(environment)
            if name.startswith(start) and name not in known
        ]
        if config.readable_by_others and SECRETS & config.table(self.command).keys():
            warnings.append(f"other users can read the API key in {config.path}: chmod 600 {config.path}")
        return warnings

    def error(self, message: str) -> NoReturn:
        """Print the message to stderr, with the sources of the options in it, and exit."""
        super().error(self._add_sources(message))

    def _add_sources(self, message: str) -> str:
        notes = [
            f"{name_of(action)} is set by {setting.origin}"
            for action, setting in self._used.items()
            if re.search(rf"(?<![\w-]){re.escape(name_of(action))}(?![\w-])", message)
        ]
        return f"{message} ({', '.join(notes)})" if notes else message

    @contextmanager
    def _without_values(self) -> Generator[None]:
        """Parse without types, choices and defaults for a while, to find which arguments are typed.

        A type may read a file, which must happen once: the file may be a pipe.
        """
        kept = [(action, action.type, action.choices, action.default) for action in self.settable()]
        for action, *_ in kept:
            action.type = action.choices = action.default = None
        try:
            yield
        finally:
            for action, type, choices, default in kept:
                action.type, action.choices, action.default = type, choices, default

    def _words(self, action: argparse.Action, setting: Setting) -> list[str]:
        try:
            return setting.words(action)
        except WrongType as error:
            self.error(f"argument {name_of(action)}: {error}")


def _variable(name: str) -> str:
    return name.replace("-", "_").replace(" ", "_").upper()
