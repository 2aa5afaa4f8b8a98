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
