"""Flags of a command line that can be turned off again."""

import argparse
from collections.abc import Sequence


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

    def _format_action_invocation(self, action: argparse.Action) -> str:
        return action.format_usage() if isinstance(action, Flag) else super()._format_action_invocation(action)
