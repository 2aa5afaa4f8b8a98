"""What every Python program that the tests start runs first: transformers remembers what it read at earlier starts.

It is only a hook, and imports nothing itself, since most of those programs do not import transformers.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec


class Finder:
    """Finds the one module that reads much."""

    def find_spec(self, name: str, path: "Sequence[str] | None" = None, target: object = None) -> "ModuleSpec | None":
        """What Python itself would find, changed."""
        if name != "transformers.utils.import_utils":
            return None
        from remembered_names import spec_that_remembers

        return spec_that_remembers(name, path)


sys.meta_path.insert(0, Finder())
