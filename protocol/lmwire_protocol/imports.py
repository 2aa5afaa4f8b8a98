"""Imports of many modules at a program's start."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None]:
    """Import modules without collections of garbage, which take a tenth of the imports' time and find none.

    Later collections, and the last one at the process's exit, leave these modules out. What else is in memory by then
    is left out too, so this is for a program's start.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
