"""Start-up code of every Python program that the tests start. It makes the import of transformers cheaper.

In each process that imports it, transformers reads its 1,600 source files twice, to list the names in them. The names
are always the same, so the first process stores them, and the others read the stored list.

Most of those programs do not import transformers, so nothing is imported here until one does. The code is one file,
since processes of `multiprocessing` change their import path once they run.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

KEPT = os.path.join(os.path.dirname(__file__), "..", "..", ".cache", "transformers")


class Finder:
    """A finder of the module that lists the names. It replaces that module's function once the module has run."""

    def find_spec(self, name: str, path: "Sequence[str] | None" = None, target: object = None) -> "ModuleSpec | None":
        """Return where the module comes from, or None to leave it to other finders."""
        if name != "transformers.utils.import_utils":
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def run_and_change(module: "ModuleType") -> None:
            run(module)
            setattr(module, "define_import_structure", remembering(module.define_import_structure))  # noqa: B010

        setattr(spec.loader, "exec_module", run_and_change)  # noqa: B010
        return spec


def remembering(read: "Callable[..., Any]") -> "Callable[..., Any]":
    """Wrap a function that lists a folder's names, so that the names of the folder of all models are stored."""
    import contextlib
    import marshal
    from pathlib import Path

    version = sys.modules["transformers"].__version__

    def read_or_recall(module_path: str, prefix: str | None = None) -> "Any":
        file = Path(module_path)
        if (file.parent if file.suffix else file).name != "models":
            return read(module_path, prefix)
        cached = Path(KEPT, f"{version}-{prefix}.marshal")
        with contextlib.suppress(OSError, ValueError, EOFError):
            return marshal.loads(cached.read_bytes())
        names = read(module_path, prefix)
        with contextlib.suppress(OSError):
            keep(cached, marshal.dumps(names))
        return names

    return read_or_recall


def keep(file: "Any", data: bytes) -> None:
    """Write a file that other processes may read at any time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(data)
    unfinished.replace(file)


sys.meta_path.insert(0, Finder())
