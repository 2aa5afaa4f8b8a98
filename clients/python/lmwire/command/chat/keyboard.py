"""The terminal's echo."""

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unechoed() -> Iterator[None]:
    """While this lasts, keys do not appear on the terminal; they wait for who reads next.

    An answer is drawn again and again where it stands, and what the terminal wrote in between would shift it.
    """
    settings = termios.tcgetattr(sys.stdin)
    quiet = settings.copy()
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)
