"""The echo of keys on the terminal."""

import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def echo_off() -> Generator[None]:
    """Hide typed keys while the context is entered; the next read of stdin gets them.

    An answer is drawn repeatedly in one place, and echoed keys would shift it.
    """
    settings = termios.tcgetattr(sys.stdin)
    quiet = settings.copy()
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)
