"""Send a Python program a signal when it imports a module, and record its imports.

$SIGNAL_AT is `MODULE NUMBER`; $IMPORTS_TO names a file that gets a module's name a line.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Finder:
    """Asked for every module before any other finder; finds none."""

    def find_spec(self, name: str, path: "Sequence[str] | None" = None, target: object = None) -> None:
        """See `importlib.abc.MetaPathFinder`."""
        if "IMPORTS_TO" in os.environ:
            with open(os.environ["IMPORTS_TO"], "a") as file:
                file.write(name + "\n")
        module, _, number = os.environ.get("SIGNAL_AT", "").partition(" ")
        if name == module:
            os.kill(os.getpid(), int(number))


sys.meta_path.insert(0, Finder())  # pyright: ignore[reportArgumentType]
