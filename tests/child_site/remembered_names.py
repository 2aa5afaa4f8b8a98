"""Spares a process most of the import of a model library.

transformers reads its 1,600 source files, twice, in each process that imports it, to learn which names they have. These
are the same every time, so the first process keeps what it learned, and the others read that.
"""

import contextlib
import marshal
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final

KEPT: Final = Path(__file__).parents[2] / ".cache" / "transformers"


def spec_that_remembers(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """Finds transformers' reader as Python would, and changes it when it has run."""
    spec = PathFinder.find_spec(name, path)
    if spec is None or spec.loader is None:
        return None
    run = spec.loader.exec_module

    def run_and_change(module: ModuleType) -> None:
        run(module)
        setattr(module, "define_import_structure", remembering(module.define_import_structure))  # noqa: B010

    setattr(spec.loader, "exec_module", run_and_change)  # noqa: B010
    return spec


def remembering(read: Callable[..., Any]) -> Callable[..., Any]:
    """What reads the names of a folder, with a memory for the one that has all models."""
    version = sys.modules["transformers"].__version__

    def read_or_recall(module_path: str, prefix: str | None = None) -> Any:
        file = Path(module_path)
        if (file.parent if file.suffix else file).name != "models":
            return read(module_path, prefix)
        kept = KEPT / f"{version}-{prefix}.marshal"
        with contextlib.suppress(OSError, ValueError, EOFError):
            return marshal.loads(kept.read_bytes())
        names = read(module_path, prefix)
        with contextlib.suppress(OSError):
            keep(kept, marshal.dumps(names))
        return names

    return read_or_recall


def keep(file: Path, data: bytes) -> None:
    """Writes a file that others may read at any time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(data)
    unfinished.replace(file)
