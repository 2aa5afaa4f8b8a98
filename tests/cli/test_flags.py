"""Every flag of every command can be turned off on the command line, whatever has turned it on."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmwire.cli.arguments.commands import HOST_COMMANDS, walk
from lmwire.cli.command_tree import complete_parser
from lmwire.cli.option_sources import ConfigFile, SourcedParser
from lmwire_protocol.command_line import Flag

PARSERS = {parser.prog: parser for parser in walk(complete_parser())}


def booleans(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the options without a value, but for those that print something and exit, such as `--help`."""
    yield from (action for action in parser._actions if action.nargs == 0 and action.default != argparse.SUPPRESS)


FLAGS = [(command, action.option_strings[0]) for command, parser in PARSERS.items() for action in booleans(parser)]
CONFIGURABLE = [(command, flag) for command, flag in FLAGS if command.split()[1] not in HOST_COMMANDS]


@pytest.mark.parametrize("command", sorted({command for command, _ in FLAGS}))
def test_every_option_without_a_value_has_a_form_that_turns_it_off(command: str) -> None:
    for action in booleans(PARSERS[command]):
        on = action.option_strings[0]
        assert isinstance(action, Flag), on
        assert action.option_strings == [on, f"--no-{on.removeprefix('--')}"]


@pytest.mark.parametrize(("command", "flag"), CONFIGURABLE)
def test_the_command_line_wins_over_a_variable_which_wins_over_the_file(command: str, flag: str) -> None:
    on, off = flag, f"--no-{flag.removeprefix('--')}"
    for variable, key, typed, expected in (
        (None, True, (), True),
        (None, False, (), False),
        ("0", True, (), False),
        ("1", False, (), True),
        ("1", True, (off,), False),
        (None, True, (off,), False),
        ("0", False, (on,), True),
        (None, None, (off, on), True),
        (None, None, (on, off), False),
    ):
        assert parsed(command, flag, variable, key, typed) is expected, (variable, key, typed)


def parsed(command: str, flag: str, variable: str | None, key: bool | None, typed: tuple[str, ...]) -> object:
    """Return the value of a flag, which a variable, a key of the config file and a command line set."""
    parser = PARSERS[command]
    assert isinstance(parser, SourcedParser)
    (action,) = [each for each in booleans(parser) if flag in each.option_strings]
    environment = {} if variable is None else {parser.variable_of(action): variable}
    tables: dict[str, Any] = {} if key is None else {flag.removeprefix("--"): key}
    for name in reversed(parser.command):
        tables = {name: tables}
    arguments = parser.parse_with_sources([*required(parser), *typed], environment, ConfigFile(Path("lmwire"), tables))
    return getattr(arguments, action.dest)


def required(parser: SourcedParser) -> list[str]:
    """Return the words that a command line of the command must have."""
    words: list[str] = []
    for action in parser._actions:
        if action.required:
            words += [*action.option_strings[-1:], str(next(iter(action.choices or ("x",))))]
    return words


def test_the_help_has_both_forms_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        PARSERS["lmwire serve"].parse_args(["--help"])
    shown = capsys.readouterr().out
    assert "\n  --[no-]preload        load the models when the server starts\n" in shown
    assert "--no-preload" not in shown
