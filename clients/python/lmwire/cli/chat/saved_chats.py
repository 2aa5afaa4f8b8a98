"""Conversations on disk: saved by name, and the last one, each as a JSON file that only this user can read."""

import os
import re
from pathlib import Path
from typing import Any, Final

import msgspec

from ..private_files import write_private

LAST: Final = "last"
"""Name of the conversation that is saved after each answer."""
_NAME: Final = re.compile(r"\w[\w.-]{0,99}")
_MAX_BYTES: Final = 256 * 2**20


def state_folder() -> Path:
    """Return the folder, made if necessary: `lmwire` in $XDG_STATE_HOME, or in ~/.local/state.

    Raises:
        OSError: It cannot be made.
    """
    home = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(home if os.path.isabs(home) else os.path.expanduser("~/.local/state"), "lmwire")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


class InvalidChat(Exception):
    """A sentence about a conversation that cannot be saved or loaded."""


class SavedChat(msgspec.Struct, kw_only=True):
    """A conversation in a file."""

    model: str
    """The name of its model."""
    messages: list[dict[str, Any]]
    """The messages as a worker receives them, with the system message."""


def save_chat(name: str, chat: SavedChat) -> Path:
    """Write a conversation, and return its file.

    Args:
        name: A name, or a path with a slash in it.
        chat: The conversation.

    Raises:
        InvalidChat: The file cannot be written.
    """
    try:
        file = _file_of(name)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(file, msgspec.json.format(msgspec.json.encode(chat), indent=1))
    except OSError as error:
        raise InvalidChat(f"{name}: {error.strerror}") from None
    return file


def load_chat(name: str) -> SavedChat:
    """Return a saved conversation.

    Args:
        name: A name, or a path with a slash in it.

    Raises:
        InvalidChat: There is none of this name, or the file is not one.
    """
    file = _file_of(name)
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise InvalidChat(f"{file} is larger than a conversation")
        return msgspec.json.decode(file.read_bytes(), type=SavedChat)
    except FileNotFoundError:
        names = ", ".join(saved_names()) or "none"
        raise InvalidChat(f"the conversation {name} is not saved; these are: {names}") from None
    except OSError as error:
        raise InvalidChat(f"{file}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise InvalidChat(f"{file} is not a saved conversation: {error}") from None


def saved_names() -> list[str]:
    """Return the names of the saved conversations."""
    try:
        return sorted(file.stem for file in (state_folder() / "chats").glob("*.json"))
    except OSError:
        return []


def _file_of(name: str) -> Path:
    if "/" in name:
        return Path(name).expanduser()
    if not _NAME.fullmatch(name):
        raise InvalidChat(f"{name[:100]!r} is not a name: use letters, digits, dots and dashes, or write a path")
    return state_folder() / "chats" / f"{name}.json"
