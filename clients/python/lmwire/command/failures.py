"""From an exception to what a person reads on stderr, and the exit code."""

import os
import sys
from collections.abc import Callable
from typing import Final, TypeVar

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 64
OUTPUT_GONE: Final = 74
INTERRUPTED: Final = 130

Arguments = TypeVar("Arguments")


class Failure(Exception):
    """Ends the command with a sentence on stderr.

    Args:
        sentence: What was wrong and what to do.
        code: The exit code.
    """

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


def reported(run: Callable[[Arguments], int], arguments: Arguments) -> int:
    """Calls `run(arguments)` and returns its exit code, that of a failure or an interruption included."""
    try:
        return run(arguments)
    except Failure as failure:
        print(f"lmwire: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # As `lmwire chat … | head -1` does. Python would complain again when it flushes stdout at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_GONE
