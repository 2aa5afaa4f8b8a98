"""`lmwire completion`: scripts that complete the command in a shell, made by shtab from the parsers."""

import argparse
from argparse import Namespace
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from lmwire_protocol.extras import not_installed

from .arguments.commands import subcommands_of
from .command_tree import complete_parser
from .errors import OK, CliError

_LIST_MODELS: Final = "lmwire models 2>/dev/null | awk 'NR > 1 && $1 ~ /\\// { print $1 }'"
"""Command that prints hub ids. bash splits words at colons, so that `builtin:tiny` cannot be among them."""


def run(arguments: Namespace) -> int:
    """Print the script, and return the exit code."""
    print(completion_script(arguments.shell))
    return OK


def completion_script(shell: str) -> str:
    """Return the script of a shell that shtab supports.

    Args:
        shell: The shell, such as `bash`.

    Raises:
        CliError: shtab is not installed.
    """
    try:
        shtab = import_module("shtab")
    except ModuleNotFoundError:
        raise CliError(not_installed("shtab", None)) from None
    parser = complete_parser()
    _add_completers(parser, shtab)
    return shtab.complete(parser, shell)


def _add_completers(parser: argparse.ArgumentParser, shtab: ModuleType) -> None:
    completers = {
        "FILE": shtab.FILE,
        "FOLDER": shtab.DIRECTORY,
        "DIR": shtab.DIRECTORY,
        "PATH": shtab.FILE,
        "MODEL": shtab.cmd(_LIST_MODELS),
    }
    for action in _actions(parser):
        if completer := completers.get(str(action.metavar)):
            action.complete = completer
    for each in subcommands_of(parser).values():
        _add_completers(each, shtab)


def _actions(parser: argparse.ArgumentParser) -> list[Any]:
    return list(parser._actions)  # pyright: ignore[reportPrivateUsage]
