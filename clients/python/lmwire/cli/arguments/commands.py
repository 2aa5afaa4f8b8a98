"""The commands of a parser: their parsers by name, and the tables of the config file that they have."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Final, cast

from ..option_sources import ConfigFile, InvalidConfigFile, SourcedParser

HOST_COMMANDS: Final = frozenset({"worker", "mock"})
"""Commands that a host starts. They have no table: a host must get the worker that it asks for."""


def subcommands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the commands below a parser; empty if it has none. A change of it changes the parser."""
    action = _subcommands(parser)
    return {} if action is None else action.choices


def walk(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers of all commands that have options, without those that only group others."""
    below = subcommands_of(parser)
    if not below:
        yield parser
    for each in below.values():
        yield from walk(each)


def find_command(parser: SourcedParser, argv: Sequence[str]) -> tuple[SourcedParser, Sequence[str]]:
    """Return the parser of the command that a command line names, and the arguments after the command's name.

    argparse itself would let the parser above parse first, and that one knows no variables.

    Args:
        parser: The parser of all commands.
        argv: The command line, after the program's name.
    """
    action = _subcommands(parser)
    if action is None or not argv or argv[0] not in subcommands_of(parser):
        return parser, argv
    below = cast(SourcedParser, subcommands_of(parser)[argv[0]])
    if action.dest != argparse.SUPPRESS:
        below.set_defaults(**{action.dest: argv[0]})
    return find_command(below, argv[1:])


def check_tables(parser: argparse.ArgumentParser, config: ConfigFile) -> None:
    """Check that the tables of a config file are those of commands.

    Args:
        parser: The parser of all commands.
        config: The config file.

    Raises:
        InvalidConfigFile: A table is unknown, or belongs to a command that does not read the file.
    """
    for name in sorted(HOST_COMMANDS & config.tables.keys()):
        raise InvalidConfigFile(
            f"{config.path}: [{name}] has no effect: the host that starts `lmwire {name}` gives its options"
        )
    _check_below(parser, config, ())


def _check_below(parser: argparse.ArgumentParser, config: ConfigFile, names: tuple[str, ...]) -> None:
    if below := subcommands_of(parser):
        config.check_names(names, below.keys() if names else below.keys() - HOST_COMMANDS)
        for name, each in below.items():
            _check_below(each, config, (*names, name))


# argparse has no public name for this type, nor for a parser's actions.
def _subcommands(parser: argparse.ArgumentParser) -> "argparse._SubParsersAction[argparse.ArgumentParser] | None":  # pyright: ignore[reportPrivateUsage]
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            return cast("argparse._SubParsersAction[argparse.ArgumentParser]", action)  # pyright: ignore[reportPrivateUsage]
    return None
