"""Packages without what their `__init__` imports, for processes that need only some of their modules."""

import importlib
import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any


def install_bare(name: str) -> bool:
    """Put a bare package in the place of one, unless that is imported already, and return whether it is there now.

    Submodules are found as usual. Whoever asks the package for another name makes it run its own `__init__` then.

    Args:
        name: The package's name.

    Raises:
        ModuleNotFoundError: It is not installed.
    """
    if name in sys.modules:
        return False
    spec = find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    package = module_from_spec(spec)
    package.__class__ = _BarePackage
    sys.modules[name] = package
    return True


class _BarePackage(ModuleType):
    """A package whose `__init__` has not run."""

    def __getattr__(self, name: str) -> Any:
        package = self.__name__
        if name.startswith("__") and name not in ("__version__", "__all__"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if find_spec(f"{package}.{name}") is not None:
            return importlib.import_module(f"{package}.{name}")
        object.__setattr__(self, "__class__", ModuleType)
        spec = self.__spec__
        assert spec is not None and spec.loader is not None
        spec.loader.exec_module(self)
        return getattr(self, name)
