"""Files that show which models the workers of this user have loaded, each locked for as long as its worker lives.

A lock ends with its process, however that dies, so a file without one is known to be left over. As a program,
`python -P -m lmwire_worker.process.run_files`, this module writes what the files say to stdout as JSON.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

_MAX_BYTES: Final = 10_000
_SUFFIX: Final = ".json"


class LoadedModel(Struct, frozen=True):
    """The model that a running worker has loaded."""

    pid: int
    """The worker's process id."""
    model: str
    """The name that its host gave."""
    folder: str
    """The model folder."""


class RunFile:
    """The file of this process. It exists while a model is loaded."""

    def __init__(self) -> None:
        self._descriptor: int | None = None

    def record(self, model: str, folder: str) -> None:
        """Write which model this process has loaded. A failure is ignored: nothing of the worker depends on it.

        Args:
            model: The name that the host gave.
            folder: The model folder.
        """
        with contextlib.suppress(OSError):
            if self._descriptor is None:
                list(read_loaded_models())  # removes what killed workers have left
                self._descriptor = _create(_folder())
            text = json.dumps(asdict(LoadedModel(os.getpid(), model, folder))).encode()
            os.pwrite(self._descriptor, text, 0)
            os.ftruncate(self._descriptor, len(text))

    def remove(self) -> None:
        """Remove the file. Two threads may call it at once: one that unloads, and one that ends the process."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                (_folder() / f"{os.getpid()}{_SUFFIX}").unlink(missing_ok=True)
            os.close(descriptor)


def read_loaded_models() -> Iterator[LoadedModel]:
    """Yield the models of the running workers of this user, and remove the files of those that are gone."""
    folder = _folder()
    for file in sorted(folder.glob(f"*{_SUFFIX}")) if _is_own(folder) else ():
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if _is_locked(descriptor):
                    yield _parse(json.loads(os.read(descriptor, _MAX_BYTES)))
                else:
                    file.unlink()
            finally:
                os.close(descriptor)


def _parse(content: dict[str, Any]) -> LoadedModel:
    return LoadedModel(int(content["pid"]), str(content["model"]), str(content["folder"]))


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _create(folder: Path) -> int:
    """Return the descriptor of this process's locked file. It has its name only once it is locked."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_own(folder):
        raise PermissionError(f"{folder} is not this user's alone")
    file = folder / f"{os.getpid()}{_SUFFIX}"
    unnamed = file.with_suffix(".new")
    descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    unnamed.replace(file)
    return descriptor


def _is_own(folder: Path) -> bool:
    """Return whether only this user can put files into a folder. A cache in a shared place can be another's."""
    try:
        status = folder.stat()
    except OSError:
        return False
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _folder() -> Path:
    """Return the folder of these files. It does not depend on the login session, as XDG_RUNTIME_DIR does."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return Path(home if os.path.isabs(home) else os.path.expanduser("~/.cache"), "lmwire", "run")


if __name__ == "__main__":
    print(json.dumps([asdict(model) for model in read_loaded_models()]))
