"""Notes on the terminal beside the answers, such as the tokens and the speed of one."""

import sys
from typing import Final

from lmwire_protocol.events import ResultDone
from lmwire_protocol.printable import printable

from ..terminal_text import dim

_CUT_OFF: Final[dict[str, str]] = {
    "length": "no more tokens were allowed",
    "capacity": "there was no memory for more",
}


def print_summary(result: ResultDone) -> None:
    """Print a line with an answer's tokens and speed, and with the reason if it was cut off."""
    tokens = result.usage.completion_tokens
    parts = [f"{tokens} token{'' if tokens == 1 else 's'}"]
    if result.usage.draft_accepted:
        parts.append(f"{result.usage.draft_accepted} of them drafted")
    parts += speed(result)
    if reason := _CUT_OFF.get(result.finish_reason):
        parts.append(f"cut off: {reason}")
    print_note(", ".join(parts))


def speed(result: ResultDone) -> list[str]:
    """Return the speed of an answer for a person to read; nothing if it is unknown."""
    tps = result.timings.decode_tps
    return [] if tps is None else [f"{tps:,.0f} tok/s"]


def print_note(text: str) -> None:
    """Print a dimmed note if stdout is a terminal. In a pipe it would mix with the answer."""
    if sys.stdout.isatty():
        print(dim(printable(text)))
