"""The argument parser that all subcommands share, and the types of their arguments."""

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

from ..option_sources import SourcedParser

# argparse has no public names for these types.
ArgumentGroup: TypeAlias = "argparse._ArgumentGroup"  # pyright: ignore[reportPrivateUsage]
Subcommands: TypeAlias = "argparse._SubParsersAction[SourcedParser]"  # pyright: ignore[reportPrivateUsage]


_VERSION_HELP: Final = "show the version and exit"


class ShowVersion(argparse.Action):
    """The option that prints the version and exits. argparse's own would need the version for every help."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=_VERSION_HELP)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print the version to stdout, and exit."""
        print(f"lmwire {import_module('lmwire_protocol').__version__}")
        parser.exit()


def run_later(module: str) -> Callable[[argparse.Namespace], int]:
    """Return a function that imports a module of the command line and calls its `run`."""

    def run(arguments: argparse.Namespace) -> int:
        return import_module(f"lmwire.cli.{module}").run(arguments)

    return run


def json_file(path: str) -> Any:
    """Return the content of a JSON file, as the type of an argument."""
    import json  # the help, and a chat without such a file, start without it

    try:
        return json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{path}: {error}") from None


def image_file(path: str) -> Any:
    """Return an image file as a part of a message, as the type of an argument."""
    try:
        return import_module("lmwire").image_part(path)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error.strerror}") from None


def positive(text: str) -> int:
    """Return a whole number of at least 1, as the type of an argument."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def split_trailing_arguments(argv: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments before and after the first `--` of a command that passes the latter to another program.

    argparse would read them as its own.

    Args:
        argv: The command line, after the program's name.
    """
    if argv[:1] not in (["launch"], ["service"]) or "--" not in argv:
        return argv, []
    border = argv.index("--")
    return argv[:border], argv[border + 1 :]
