"""Files with keys, prompts or answers: no other user can read one at any time."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_private(file: Path, content: bytes) -> None:
    """Write a file that only this user can read, in place of one of that name. It appears with all of its content.

    A file that exists is not written to: whoever could read it may have it open.

    Args:
        file: The file.
        content: Its content.

    Raises:
        OSError: It cannot be written. What was there stays.
    """
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # with mode 0600
    try:
        with open(descriptor, "wb") as written:
            written.write(content)
        Path(name).replace(file)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def touch_private(file: Path) -> Path:
    """Make a file that only this user can read, unless this user has one of that name, and return it.

    Raises:
        OSError: It cannot be made, or is another user's.
    """
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(f"{file} is another user's")
    finally:
        os.close(descriptor)
    return file
