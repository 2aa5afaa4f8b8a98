"""The command line of `lmwire`: its subcommands, their options and the help.

A subcommand's own code is imported only when it runs, so that the help is quick.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from textwrap import dedent
from typing import Final

from lmwire_protocol.command_line import Flag

from ..errors import USAGE
from ..option_sources import ConfigFile, InvalidConfigFile, SourcedParser, read_config_file
from .bench import add_bench
from .chat import add_chat
from .commands import check_tables, find_command, subcommands_of
from .parser import ShowVersion, Subcommands, run_later, split_trailing_arguments
from .subcommands import (
    add_bundle,
    add_completion,
    add_config,
    add_conformance,
    add_doctor,
    add_launch,
    add_ps,
    add_pull,
    add_rm,
    add_service,
)

__all__ = ["load_config", "make_parser", "parse"]


_OTHER_NAMES: Final = {"run": "chat", "list": "models", "ls": "models"}
"""Names that Ollama has for commands."""
_NO_COMMANDS: Final = {
    "show": "`lmwire models` shows the type, quantization, context and size of each model",
    "stop": "`lmwire ps` lists what runs; Ctrl-C ends it, and `lmwire service remove` what runs in the background",
}
"""Commands of Ollama that have no counterpart, and what to do instead."""


def parse(argv: list[str]) -> argparse.Namespace:
    """Return the parsed command line. Call its `run` with it."""
    argv = _translated(argv)
    parser = make_parser(argv[0])
    if argv[0] in _NO_COMMANDS:
        parser.error(f"lmwire has no command {argv[0]!r}: {_NO_COMMANDS[argv[0]]}")
    argv, trailing_arguments = split_trailing_arguments(argv)
    command, options = find_command(parser, argv)
    arguments = parser.parse_args(argv) if subcommands_of(command) else _parse_command(command, options)
    if "run" not in arguments:
        parser.print_help()
        parser.exit(USAGE)
    arguments.trailing_arguments = trailing_arguments
    return arguments


def _translated(argv: list[str]) -> list[str]:
    """Return a command line with lmwire's name of the command. After `run MODEL`, a text is the prompt."""
    name, *rest = argv
    if name == "run" and len(rest) > 1 and not any(argument.startswith("-") for argument in rest[:2]):
        rest.insert(1, "-p")
    return [_OTHER_NAMES.get(name, name), *rest]


def load_config(environment: Mapping[str, str]) -> ConfigFile:
    """Return the config file, after a check that each table belongs to a command.

    Args:
        environment: The environment variables.

    Raises:
        InvalidConfigFile: The file cannot be read or trusted, or has an unknown table.
    """
    config = read_config_file(environment)
    if config.tables:
        check_tables(make_parser(), config)
    return config


def _parse_command(command: SourcedParser, argv: Sequence[str]) -> argparse.Namespace:
    try:
        config = load_config(os.environ)
    except InvalidConfigFile as error:
        command.error(str(error))
    arguments = command.parse_with_sources(argv, os.environ, config)
    for warning in command.source_warnings(os.environ, config):
        print(f"{command.prog}: {warning}", file=sys.stderr)
    return arguments


def make_parser(only: str | None = None) -> SourcedParser:
    """Return the parser of all commands. Those that `main` runs by itself have no options in it.

    Args:
        only: The command that the parser is for. The others, which take milliseconds to make, are left out if there is
            such a command.
    """
    parser = SourcedParser(
        prog="lmwire",
        description="Run MLX language models as child processes that speak one protocol over their pipes.",
        epilog=dedent("""\
            examples:
              lmwire chat                                    chat with the tiny built-in model
              lmwire chat mlx-community/Qwen3-0.6B-4bit      chat with another model
              git diff | lmwire chat MODEL -p "Review this"  one answer, in a pipeline
              lmwire models                                  models on this machine that can run
              lmwire serve MODEL                             models over HTTP, at http://127.0.0.1:8080/v1
              lmwire launch claude --model MODEL             a coding agent that uses a model of this machine
              lmwire worker                                  the worker that a host program starts; see PROTOCOL.md
            """),
    )
    parser.add_argument("--version", action=ShowVersion)
    subcommands = parser.add_subparsers(title="subcommands", metavar="COMMAND")
    if only in _COMMANDS:
        _COMMANDS[only](subcommands)
        return parser
    _list_workers(subcommands)
    for add_command in _COMMANDS.values():
        add_command(subcommands)
    return parser


def _list_workers(subcommands: Subcommands) -> None:
    """List in the help the subcommands that `main` runs before it parses the command line."""
    subcommands.add_parser("worker", help="be a worker: read commands from stdin, write events to stdout")
    subcommands.add_parser("mock", help="be a worker without a model, scripted or faulty, to test a host with")
    subcommands.add_parser("serve", help="serve models over HTTP, with the APIs of OpenAI, Anthropic and Ollama")


def _add_models(subcommands: Subcommands) -> None:
    parser = subcommands.add_parser(
        "models",
        help="list the models on this machine that can run",
        description="List the models in the local hub cache that can run: type, quantization, context and size.",
        epilog="To get one more, name it: lmwire chat owner/name downloads it.",
    )
    parser.add_argument("--all", action=Flag, help="also list those that cannot run, and why")
    parser.add_argument("--json", action=Flag, help="print JSON instead of a table")
    parser.add_argument(
        "--tool-formats", action=Flag, help="list the formats of tool calls instead, for `lmwire serve --tool-format`"
    )
    parser.set_defaults(run=run_later("models"))


def _add_schema(subcommands: Subcommands) -> None:
    parser = subcommands.add_parser(
        "schema",
        help="print the protocol's JSON Schema",
        description="Print the JSON Schema of every command and event of the protocol.",
    )
    parser.add_argument("--meta", action=Flag, help="print what a schema cannot hold: limits, error codes, exit codes")
    parser.set_defaults(run=run_later("schema"))


_COMMANDS: Final[dict[str, Callable[[Subcommands], None]]] = {
    "chat": add_chat,
    "launch": add_launch,
    "models": _add_models,
    "pull": add_pull,
    "rm": add_rm,
    "ps": add_ps,
    "doctor": add_doctor,
    "bench": add_bench,
    "bundle": add_bundle,
    "schema": _add_schema,
    "config": add_config,
    "completion": add_completion,
    "service": add_service,
    "conformance": add_conformance,
}
"""Functions that add the parser of each command, in the order of the help."""
