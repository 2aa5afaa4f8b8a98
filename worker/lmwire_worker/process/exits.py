"""The one way out of a worker: what has to be removed is removed, then the process ends at once."""

import contextlib
import os
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_removals: list[Callable[[], object]] = []


def on_exit(remove: Callable[[], object]) -> None:
    """Register what `leave` calls first. It must be quick, and may be called by two threads at once."""
    _removals.append(remove)


def exit_now(code: int) -> "NoReturn":
    """End the process, whatever its threads are doing. Python's own end would wait for them, and MLX's would abort."""
    for remove in _removals:
        with contextlib.suppress(Exception):
            remove()
    os._exit(code)
