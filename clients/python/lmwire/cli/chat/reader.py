"""Read prompts from the terminal: with prompt_toolkit, or else with Python's own `input`."""

import os
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Final, TypeAlias

QUOTES: Final = '"""'
"""Encloses a prompt of several lines."""
_HINT: Final = "Ctrl-C once more quits, as Ctrl-D does."
_CONTINUED: Final = "… "


Ask: TypeAlias = Callable[[str], str]
"""Shows a text, and returns what the person types, which may have several lines.

It raises EOFError after Ctrl-D, and KeyboardInterrupt after Ctrl-C.
"""


def choose_reader(status: Callable[[], str]) -> Ask:
    """Return the best way to ask on this terminal.

    Args:
        status: Returns the text of the status line.
    """
    if os.environ.get("TERM", "dumb") == "dumb" or not find_spec("prompt_toolkit"):
        return LineReader().ask
    from .prompt_reader import PromptReader

    return PromptReader(status).ask


class LineReader:
    """Reads with `input`. A backslash or an open triple quote continues on the next line."""

    def __init__(self) -> None:
        with suppress(ImportError):
            import_module("readline")  # gives `input` line editing and a history; may write to stdout at once

    def ask(self, prompt: str) -> str:
        """See `Ask`."""
        text = input(prompt)
        while is_unfinished(text):
            text += "\n" + input(_CONTINUED)
        return text


def read(ask: Ask, prompt: str, note: Callable[[str], None]) -> str | None:
    """Return what the person types, or None to quit: after Ctrl-D, or after Ctrl-C twice.

    Args:
        ask: Reads it.
        prompt: The text before the cursor.
        note: Prints a sentence.
    """
    for hint in (_HINT, None):
        try:
            return joined(ask(prompt))
        except EOFError:
            break
        except KeyboardInterrupt:
            if hint:
                print()
                note(hint)
    print()
    return None


def is_unfinished(text: str) -> bool:
    """Return whether the prompt continues on the next line: after a backslash, or inside triple quotes."""
    return text.endswith("\\") or text.count(QUOTES) % 2 == 1


def joined(text: str) -> str:
    """Return a prompt without the backslashes that continue its lines, and without triple quotes around all of it."""
    text = text.replace("\\\n", "\n")
    inner = text.strip().removeprefix(QUOTES).removesuffix(QUOTES)
    return inner.strip("\n") if text.strip() == f"{QUOTES}{inner}{QUOTES}" else text
