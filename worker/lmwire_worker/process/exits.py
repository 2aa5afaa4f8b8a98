"""The end of the process: its clean-up, then the immediate exit."""

import contextlib
import os
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_removals: list[Callable[[], object]] = []


def on_exit(remove: Callable[[], object]) -> None:
    """Register a clean-up for `exit_now`. It must be quick, and two threads may call it at once."""
    _removals.append(remove)


def exit_now(code: int) -> "NoReturn":
    """Clean up and end the process at once.

    Python's own exit would wait for the threads, and MLX's would abort.
    """
    for remove in _removals:
        with contextlib.suppress(Exception):
            remove()
    os._exit(code)
