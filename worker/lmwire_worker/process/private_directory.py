"""A directory for temporary files that no other user can write to, read, or put another in place of.

On a CPU, MLX compiles kernels into `$TMPDIR/mlx/VERSION/cpu` and loads whatever library it finds there under the name
of a kernel; on CUDA it keeps compiled code in the same way. In a shared /tmp, whoever makes the directory first chooses
the code.

As a program, `python -P -m lmwire_worker.process.private_directory`, this module writes to stdout, as JSON, whether the
present place is private, and which a worker would use otherwise.
"""

import fcntl
import json
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

_VARIABLES: Final = ("TMPDIR", "TEMP", "TMP")
"""Variables that name the place for temporary files."""
_PREFIX: Final = "lmwire-"
_LOCK: Final = "lock"


def use_private_directory(at_exit: Callable[[Callable[[], object]], object]) -> None:
    """Make such a directory this process's, and its children's, place for temporary files.

    That is the present one, if it is private. Otherwise it is one in the user's cache, so that workers share what is
    compiled: a kernel takes half a second on a CPU, and up to a minute on CUDA. Where that cannot be trusted either, it
    is a fresh one.

    Args:
        at_exit: Called with what removes a fresh directory.

    Raises:
        OSError: No directory is private enough.
    """
    os.environ["TMPDIR"] = directory = private(_present()) or in_cache() or _fresh(at_exit)
    if "tempfile" in sys.modules:
        import tempfile

        tempfile.tempdir = directory  # it keeps the place that it found first


def _present() -> str:
    """Return the present place for temporary files as `tempfile` finds it. To import that takes milliseconds.

    Where it would be neither /tmp nor one that a variable names, this is /tmp, which is not private then.
    """
    named = [*filter(None, map(os.environ.get, _VARIABLES)), "/tmp"]
    return next((os.path.abspath(place) for place in named if os.access(place, os.W_OK | os.X_OK)), "/tmp")


def private(directory: str | Path) -> str | None:
    """Return a directory's real path if it is this user's alone; None otherwise.

    What it holds is as safe as the directory itself, since no other user can have reached it.
    """
    try:
        real = Path(directory).resolve(strict=True)
        status = real.lstat()
        ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
        return str(real) if ours and all(_keeps_its_entries(parent) for parent in real.parents) else None
    except (OSError, RuntimeError):
        return None


def _keeps_its_entries(directory: Path) -> bool:
    """Return whether only this user and root can rename what the directory holds and is theirs."""
    status = directory.lstat()
    return status.st_uid in (0, os.geteuid()) and (not status.st_mode & 0o022 or bool(status.st_mode & stat.S_ISVTX))


def in_cache() -> str | None:
    """Return the directory in the user's cache, made if necessary; None if other users can change it."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    cache = home if os.path.isabs(home) else os.path.expanduser("~/.cache")
    if not os.path.isabs(cache):  # the user has no home
        return None
    directory = Path(cache, "lmwire", "tmp")
    with suppress(OSError):
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700)
    return private(directory) if os.access(directory, os.W_OK) else None


def _fresh(at_exit: Callable[[Callable[[], object]], object]) -> str:
    """Make a directory that a lock shows to be in use, and remove those of processes that were killed."""
    import shutil
    import tempfile

    _remove_abandoned(Path(tempfile.gettempdir()).resolve())
    directory = private(made := tempfile.mkdtemp(prefix=_PREFIX))
    if directory is None:
        os.rmdir(made)
        raise OSError(f"other users can replace what is in {tempfile.gettempdir()}; set TMPDIR to a private directory")
    at_exit(lambda: shutil.rmtree(directory, ignore_errors=True))
    unnamed = Path(directory, f"{_LOCK}.new")
    _locked(unnamed, os.O_CREAT)
    unnamed.rename(Path(directory, _LOCK))  # nobody finds it before it is locked
    return directory


def _remove_abandoned(parent: Path) -> None:
    import shutil

    for directory in parent.glob(f"{_PREFIX}*"):
        if private(directory) == str(directory) and (lock := _locked(directory / _LOCK)) is not None:
            shutil.rmtree(directory, ignore_errors=True)
            os.close(lock)


def _locked(file: Path, flags: int = 0) -> int | None:
    """Return a descriptor that holds a file's lock until the process ends; None if another process holds it."""
    descriptor = None
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if descriptor is not None:
            os.close(descriptor)
        return None
    return descriptor


if __name__ == "__main__":
    own = private(folder := _present())
    print(json.dumps({"folder": folder, "is_private": own is not None, "cache": None if own else in_cache()}))
