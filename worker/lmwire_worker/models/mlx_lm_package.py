"""mlx-lm without what its `__init__` imports: transformers and huggingface_hub, which take more than a second.

The worker uses mlx-lm's models and caches, which need neither. `install` puts a bare package in the place of mlx-lm's.
Whoever asks that for another name, such as `mlx_lm.load`, makes it run its own `__init__` then. So programs that use
mlx-lm as they know it, such as mlx-vlm, go on working.
"""

import os
import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

from ..process.bare_package import install_bare

_NAME: Final = "mlx_lm"
_UTILS: Final = "mlx_lm.utils"
"""The module that lowers the limit of open files when it is imported."""


def install() -> None:
    """Make `mlx_lm` a bare package from now on, unless it is imported already.

    Raises:
        ImportError: mlx-lm is not installed.
    """
    if install_bare(_NAME):
        os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"] = "1"  # as mlx-lm's own `__init__` does
        sys.meta_path.insert(0, _LimitKeeper())


class _LimitKeeper:
    """Finds the module that lowers the limit of open files, and keeps the limit while it is imported."""

    def __init__(self) -> None:
        self._loader: Any = None

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of that module alone; see `importlib.abc.MetaPathFinder`."""
        spec = PathFinder.find_spec(name, path, target) if name == _UTILS else None
        if spec is not None:
            keeper: Any = self  # a loader by its methods; the class of all loaders takes long to import
            self._loader, spec.loader = spec.loader, keeper
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module of a spec; see `importlib.abc.Loader`."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; see `importlib.abc.Loader`."""
        with _kept_file_limit():
            self._loader.exec_module(module)


@contextmanager
def _kept_file_limit() -> Iterator[None]:
    """Ignore changes of limits: only root could raise the limit of open files again."""
    change = resource.setrlimit
    resource.setrlimit = lambda *_: None
    try:
        yield
    finally:
        resource.setrlimit = change
