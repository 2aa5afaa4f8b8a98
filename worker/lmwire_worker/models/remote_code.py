"""Refuse code that comes with a model, whichever library is about to run it.

The libraries have many ways to import Python from a model's folder or from the hub, and some of them take trust for
granted. All of them end in the interpreter, which reports what it opens and executes to an audit hook:
https://docs.python.org/3/library/audit_events.html
"""

import os
import re
import site
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import all_suffixes
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

from lmwire_protocol import RequestError

from ..engine.interface import LoadCancelled
from .hub.cache import hub_cache, hub_home

LIBRARIES: Final = ("lmwire_protocol", "lmwire_worker", "mlx", "mlx_lm", "mlx_vlm", "mlx_audio", "transformers")
"""Packages that lie outside the interpreter's own directories where someone works on them."""
_SUFFIXES: Final = tuple(all_suffixes())
_SEPARATOR: Final = re.compile(re.escape(os.sep))


class RefusedCodeError(PermissionError):
    """Code that comes with a model was about to run."""


class _Guard:
    """The audit hook of the process, which cannot be removed."""

    def __init__(self) -> None:
        self.refuses = False
        """True if only installed code may run."""
        self.loading: int | None = None
        """The thread of a load without trust, which needs neither pickles nor the network."""
        self.refused: list[str] = []
        """The files that the current load tried to run."""
        self.has_trusted = False
        """True if a model's code may have run in this process."""
        self._installed: set[str] = set()
        self._foreign: set[str] = set()
        self._checks: dict[str, Callable[..., None]] = {
            "open": self._check_opened,
            "exec": self._check_executed,
            "import": self._check_imported,
            "pickle.find_class": self._check_unpickled,
            "socket.connect": self._check_connected,
            "socket.getaddrinfo": self._check_connected,
        }

    def watch(self, folder: Path) -> None:
        """Take a model's folder for one with foreign code; the first time, begin to watch the process."""
        if not self._installed:
            self._installed = _directories(_installation())
            self._foreign = _directories(_caches())
            sys.addaudithook(self._hear)
        self._foreign |= _directories([str(folder)])

    def is_installed(self, path: str) -> bool:
        """Return whether a file belongs to the interpreter or to an installed package.

        The nearest directory decides: a model may lie beside packages, and packages beside a model.
        """
        return self._is_installed_below(_beginnings(path))

    def foreign_modules(self) -> dict[str, ModuleType]:
        """Return the imported modules that are not installed."""
        files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items() if name != "__main__"}
        return {
            name: sys.modules[name]
            for name, file in files.items()
            if file and not self._is_installed_below(_beginnings_of_module(file))
        }

    def _is_installed_below(self, beginnings: frozenset[str]) -> bool:
        foreign, installed = (
            max(map(len, beginnings & roots), default=0) for roots in (self._foreign, self._installed)
        )
        return installed > foreign

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.refuses and (check := self._checks.get(event)):
            check(*arguments)

    def _check_opened(self, path: Any, _: Any, flags: int) -> None:
        name = os.fsdecode(path) if isinstance(path, bytes) else path
        if isinstance(name, str) and name.endswith(_SUFFIXES) and not flags & os.O_WRONLY:
            self._check_file(name)

    def _check_executed(self, code: Any) -> None:
        if isinstance(code, CodeType) and not code.co_filename.startswith("<"):
            self._check_file(code.co_filename)

    def _check_imported(self, _: Any, file: Any, *__: Any) -> None:
        if isinstance(file, str):  # of a compiled module
            self._check_file(file)

    def _check_unpickled(self, module: str, name: str) -> None:
        if self.loading == threading.get_ident():
            self._refuse(f"{module}.{name} in a pickle")

    def _check_connected(self, *_: Any) -> None:
        if self.loading == threading.get_ident():
            self._refuse("a file that is not in the folder")

    def _check_file(self, path: str) -> None:
        if not self.is_installed(path) and os.path.exists(path):
            self._refuse(path)

    def _refuse(self, what: str) -> None:
        self.refused.append(what)
        raise RefusedCodeError(f"{what} comes with a model, and is used only with trust_remote_code")


_guard: Final = _Guard()


@contextmanager
def guard_remote_code(folder: Path, *, trusted: bool, lasting: bool = False) -> Iterator[None]:
    """Load a model, whose own code may run only if it is trusted.

    Args:
        folder: The model's.
        trusted: Whether its code may run.
        lasting: Whether it stays so until another load succeeds: libraries may import late.

    Raises:
        RequestError: unsupported, where the load failed and code was refused.
    """
    _guard.watch(folder)
    before = _guard.refuses, _guard.loading
    # What a trusted load imported is not imported again, and so the hook would not see it.
    taken = {} if trusted or not _guard.has_trusted else _guard.foreign_modules()
    for name in taken:
        del sys.modules[name]
    _guard.refuses, _guard.loading, _guard.refused = not trusted, None if trusted else threading.get_ident(), []
    _guard.has_trusted |= trusted
    try:
        yield
        if not lasting:
            _guard.refuses = before[0]
    except BaseException as error:
        _guard.refuses = before[0]
        sys.modules.update(taken)
        expected = isinstance(error, LoadCancelled) or (isinstance(error, RequestError) and error.code != "bad_model")
        if _guard.refused and not expected:
            raise untrusted_code_error(f"{folder} brings its own code ({_guard.refused[0]})") from None
        raise
    finally:
        _guard.loading = before[1]


def untrusted_code_error(problem: str) -> RequestError:
    """Return the error for a model that cannot be loaded without its own code.

    Args:
        problem: A sentence's beginning, which says what brings the code.
    """
    return RequestError(
        "unsupported", f"{problem}, which runs only when trusted; read it, and then load with trust_remote_code"
    )


def _installation() -> Iterable[str]:
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    yield from sysconfig.get_paths().values()
    yield from (*site.getsitepackages(), site.getusersitepackages())
    yield from filter(None, sys.path)
    for name in LIBRARIES:
        spec = find_spec(name)
        yield from (spec and spec.submodule_search_locations) or ()


def _caches() -> Iterable[str]:
    """Yield where the hub's files go, and the code among them."""
    yield from (hub_home(), hub_cache())
    yield os.environ.get("HF_MODULES_CACHE") or os.path.join(hub_home(), "modules")


def _beginnings(path: str) -> frozenset[str]:
    """Return the directories that a file is in, in the form of `_directories`."""
    forms = (os.path.abspath(path), os.path.realpath(path))
    return frozenset(form[: found.end()] for form in forms for found in _SEPARATOR.finditer(form))


_beginnings_of_module: Final = cache(_beginnings)
"""The same for a module's file, whose links are followed once: each load asks for all modules, which are thousands."""


def _directories(paths: Iterable[str]) -> set[str]:
    """Return directories as beginnings of the paths in them, with and without links in their names."""
    return {os.path.join(form(path), "") for path in paths for form in (os.path.abspath, os.path.realpath)}
