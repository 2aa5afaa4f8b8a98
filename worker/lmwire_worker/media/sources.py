"""Read the bytes of an image or a sound from a request, a file or an address."""

import base64
import os
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from .media_error import MediaError, check_size, check_type
from .media_refs import MediaKind, MediaRef
from .policy import MediaPolicy


def read_source(item: MediaRef, policy: MediaPolicy) -> bytes:
    """Return the bytes of a medium: at least one, at most `policy.max_bytes`.

    Args:
        item: The reference.
        policy: The permissions and limits.

    Raises:
        MediaError: It cannot be read.
    """
    media = item.media
    if media.data is not None:
        content = _decode(media.data, item.kind, policy)
    elif media.path is not None:
        content = read_file(media.path, policy)
    else:
        from .fetch import fetch  # imports the network's modules, which few requests need

        assert media.url is not None
        content = fetch(media.url, item.kind, policy)
    if not content:
        raise MediaError("is empty")
    return content


_SCHEME: Final = "data:"


def _decode(data: str, kind: MediaKind, policy: MediaPolicy) -> bytes:
    """Decode base64, alone or in a data URI. Line breaks are ignored."""
    if data[: len(_SCHEME)].lower() == _SCHEME:
        head, comma, data = data[len(_SCHEME) :].partition(",")
        media_type, *attributes = (part.strip().lower() for part in head.split(";"))
        if not comma or "base64" not in attributes:
            raise MediaError("is a data URI without base64; write data:image/png;base64, and the file in base64")
        check_type(media_type, kind)
    data = "".join(data.split())
    check_size(len(data) * 3 // 4 - 2, policy.max_bytes)
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise MediaError(f"is not base64: {error}") from None


# Files under the directories that the host allowed, and no others.

# O_NONBLOCK: opening a pipe without a writer would block forever. O_NOCTTY: a terminal must not become ours.
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def read_file(path: str, policy: MediaPolicy) -> bytes:
    """Return a file's content.

    Args:
        path: An absolute path.
        policy: The directories and the limits.

    Raises:
        MediaError: The file may not or cannot be read. For a path outside the directories, the error does not reveal
            whether the file exists.
    """
    if not policy.directories:
        problem = "names a file, and this worker may read none; start it with --media-dir DIR, or send the file as data"
        raise MediaError(problem, "unsupported")
    if not os.path.isabs(path):
        raise MediaError("is not an absolute path")
    try:
        directory, names = _within(path, policy.directories)
        with ExitStack() as opened:
            descriptor = _open(directory, names, opened)
            check_size(os.fstat(descriptor).st_size, policy.max_bytes)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read(policy.max_bytes + 1)  # it may grow meanwhile
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise MediaError(f"cannot be read: {reason}") from None
    check_size(len(content), policy.max_bytes)
    return content


def _within(path: str, directories: tuple[Path, ...]) -> tuple[str, list[str]]:
    """Return the allowed directory that contains a path, and the names below it, with all links resolved."""
    real = os.path.realpath(path)
    for directory in map(os.path.realpath, directories):
        if os.path.commonpath([directory, real]) == directory:
            return directory, os.path.relpath(real, directory).split(os.sep)
    raise MediaError("leads out of the directories that the worker was started with (--media-dir)")


def _open(directory: str, names: list[str], opened: ExitStack) -> int:
    """Open a regular file name by name, so that a link created after the check is not followed."""
    *parents, name = names
    folder = os.open(directory, _FLAGS | os.O_DIRECTORY)
    opened.callback(os.close, folder)
    for parent in parents:
        folder = os.open(parent, _FLAGS | os.O_DIRECTORY, dir_fd=folder)
        opened.callback(os.close, folder)
    _check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False))  # opening a device can have effects
    file = os.open(name, _FLAGS, dir_fd=folder)
    opened.callback(os.close, file)
    _check_regular(os.fstat(file))
    return file


def _check_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise MediaError("is not a regular file")
