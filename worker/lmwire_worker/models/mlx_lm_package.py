"""mlx-lm without what its `__init__` imports: transformers and huggingface_hub, which take more than a second.

The worker uses mlx-lm's models and caches, which need neither. `install` puts a bare package in the place of mlx-lm's,
in which submodules are found as usual. Whoever asks the package for another name, such as `mlx_lm.load`, makes it run
its own `__init__` then. So programs that use mlx-lm as they know it, such as mlx-vlm, go on working.
"""

import importlib
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

_NAME: Final = "mlx_lm"
_UTILS: Final = "mlx_lm.utils"
"""The module that lowers the limit of open files when it is imported."""


def install() -> None:
    """Make `mlx_lm` a bare package from now on, unless it is imported already.

    Raises:
        ImportError: mlx-lm is not installed.
    """
    if _NAME in sys.modules:
        return
    spec = find_spec(_NAME)
    if spec is None:
        raise ModuleNotFoundError("No module named 'mlx_lm'", name=_NAME)
    os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"] = "1"  # as mlx-lm's own `__init__` does
    package = module_from_spec(spec)
    package.__class__ = _BarePackage
    sys.meta_path.insert(0, _LimitKeeper())
    sys.modules[_NAME] = package


class _BarePackage(ModuleType):
    """mlx-lm's package, whose `__init__` has not run."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__version__", "__all__"):
            raise AttributeError(f"module {_NAME!r} has no attribute {name!r}")
        if find_spec(f"{_NAME}.{name}") is not None:
            return importlib.import_module(f"{_NAME}.{name}")
        object.__setattr__(self, "__class__", ModuleType)
        spec = self.__spec__
        assert spec is not None and spec.loader is not None
        spec.loader.exec_module(self)
        return getattr(self, name)


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
