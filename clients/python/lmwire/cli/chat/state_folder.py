"""The folder of the chat's history and saved conversations, which only this user can read."""

import os
from pathlib import Path


def state_folder() -> Path:
    """Return the folder, made if necessary: `lmwire` in $XDG_STATE_HOME, or in ~/.local/state.

    Raises:
        OSError: It cannot be made.
    """
    home = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(home if os.path.isabs(home) else os.path.expanduser("~/.local/state"), "lmwire")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def touch_private(file: Path) -> Path:
    """Make a file that only this user can read, unless it exists, and return it.

    Raises:
        OSError: It cannot be made.
    """
    os.close(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    return file
