"""Errors of the command line, and its exit codes."""

import os
import sys
from collections.abc import Callable
from typing import Final, TypeVar

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 64
OUTPUT_CLOSED: Final = 74
INTERRUPTED: Final = 130

Arguments = TypeVar("Arguments")


class CliError(Exception):
    """An error that ends the command, with a sentence on stderr.

    Args:
        sentence: The problem and its remedy.
        code: The exit code.
    """

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


def run_and_report(run: Callable[[Arguments], int], arguments: Arguments) -> int:
    """Run a subcommand, report its error on stderr, and return the exit code.

    Args:
        run: The subcommand. It returns its exit code.
        arguments: Its parsed command line.
    """
    try:
        return run(arguments)
    except CliError as error:
        from lmwire_protocol.printable import printable  # not above: `--help` starts without that package

        print(f"lmwire: {printable(str(error))}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # `lmwire chat … | head -1` closes stdout. Without this, Python reports the error again at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_CLOSED
