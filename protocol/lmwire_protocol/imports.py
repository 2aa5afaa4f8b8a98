"""Imports of many modules at a program's start, which should do nothing that the program may not need."""

import gc
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module

TYPE_CHECKING = False  # `typing` takes longer to import than all else here
if TYPE_CHECKING:
    from typing import Any


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


def import_msgspec() -> None:
    """Import msgspec without `typing_extensions`, which takes half of its time and has what `typing` has too.

    Other threads do not find that package meanwhile, so this is for a program's start.
    """
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # pyright: ignore[reportArgumentType]
    try:
        import_module("msgspec")
    finally:
        del sys.modules["typing_extensions"]


def lazy_pattern(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled when it is first used: most need longer than the rest of a module.

    Args:
        expression: The expression, whose syntax is not checked before that.
        flags: Those of `re.compile`.
    """
    pattern: Any = _LazyPattern(expression, flags)
    return pattern


class _LazyPattern:
    """A `re.Pattern` by its methods and attributes, which are kept once they have been used."""

    __isabstractmethod__ = False  # an abstract class looks for it in each of its attributes, and would compile them

    def __init__(self, expression: str, flags: int) -> None:
        self.pattern = expression
        self._flags = flags

    def __getattr__(self, name: str) -> "Any":
        found = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, found)
        return found
