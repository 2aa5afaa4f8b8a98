"""Read the files of a model's folder: regular files only, without waiting for one, and no more than a bound.

A folder comes from anywhere. A pipe in it would be waited for, a device would be read for ever. Links are followed,
since the hub's cache consists of them, and what counts is where they lead.
"""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from lmwire_protocol import RequestError

CONFIG: Final = "config.json"
GENERATION_CONFIG: Final = "generation_config.json"
MAX_CONFIG_BYTES: Final = 10_000_000
"""Maximum size of a config.json, and of a generation_config.json; real ones have some kilobytes."""
MAX_TEXT_BYTES: Final = 100_000_000
"""Maximum size of any other file that is read as a whole; the largest tokenizer.json has some 35 MB."""
MAX_HEADER_BYTES: Final = 100_000_000
"""Maximum size of a safetensors header: the format's own bound."""
TEXT_SUFFIXES: Final = (".json", ".jinja", ".txt", ".model", ".tiktoken", ".vocab", ".bpe", ".yaml", ".yml")
"""Endings of the files that libraries read as a whole."""
MAX_ENTRIES: Final = 10_000
"""Maximum number of files in a model's folder and the folders in it."""

MAX_PROBLEM_CHARACTERS: Final = 400
"""Longest description of what is wrong with a file: it may quote the file."""
_SHOWN_CHARACTERS: Final = 40

_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_file(path: Path) -> BinaryIO:
    """Open a regular file, at once or not at all.

    Raises:
        RequestError: bad_model.
    """
    try:
        _check_regular(path, path.stat())
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        file = os.fdopen(descriptor, "rb")
    except FileNotFoundError:
        if path.is_symlink():
            raise bad_model(path, "is a link that leads nowhere; fetch the model again") from None
        raise bad_model(path.parent, f"has no {path.name}, so it is not a model folder; name one that has it") from None
    except (OSError, ValueError) as error:
        raise bad_model(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        _check_regular(path, os.fstat(descriptor))  # another file may have taken its place
    except RequestError:
        file.close()
        raise
    return file


def read_file(path: Path, most: int) -> bytes:
    """Return a file's content.

    Args:
        path: The file.
        most: The size, in bytes, above which it is refused.

    Raises:
        RequestError: bad_model.
    """
    with open_file(path) as file:
        try:
            content = file.read(most + 1)
        except OSError as error:
            raise bad_model(path, f"cannot be read: {error.strerror}") from None
    if len(content) > most:
        raise bad_model(path, f"is larger than {most:,} bytes, the most that is read of it")
    return content


def read_any_json(path: Path) -> Any:
    """Return what a JSON file holds.

    Raises:
        RequestError: bad_model.
    """
    content = read_file(path, _most_bytes(path))
    try:
        return json.loads(content)
    except (ValueError, RecursionError, MemoryError) as error:
        raise bad_model(path, f"is not JSON: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object that a file holds.

    Raises:
        RequestError: bad_model.
    """
    content = read_any_json(path)
    if not isinstance(content, dict):
        raise bad_model(path, "is not a JSON object")
    return content


def check_entries(folder: Path) -> None:
    """Refuse a folder in which a library could open something that is not a regular file, or far too large.

    Raises:
        RequestError: bad_model.
    """
    for path, status in walk_files(folder):
        _check_regular(path, status)
        if path.suffix in TEXT_SUFFIXES and status.st_size > (most := _most_bytes(path)):
            raise bad_model(path, f"is larger than {most:,} bytes, the most that is read of it")


def walk_files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files of a folder and of the folders in it, hidden ones left out, with what they are.

    Raises:
        RequestError: bad_model, when it cannot be read or there are too many.
    """
    waiting, count = [folder], 0
    try:
        while waiting:
            directory = waiting.pop()
            for entry in os.scandir(directory):
                count += 1
                if count > MAX_ENTRIES:
                    raise bad_model(folder, f"holds more than {MAX_ENTRIES:,} files, so it is not a model folder")
                try:
                    status = entry.stat()
                except OSError:  # a link that leads nowhere: opening it fails at once
                    continue
                if not stat.S_ISDIR(status.st_mode):
                    yield Path(entry.path), status
                elif directory == folder and not entry.name.startswith("."):
                    waiting.append(Path(entry.path))
    except OSError as error:
        raise bad_model(folder, f"cannot be read: {error.strerror}") from None


def bad_model(path: Path, problem: str) -> RequestError:
    """Return a bad_model error about a file or a folder.

    Args:
        path: The file or the folder.
        problem: The rest of a sentence that begins with it.
    """
    if len(problem) > MAX_PROBLEM_CHARACTERS:
        problem = f"{problem[: MAX_PROBLEM_CHARACTERS - 1]}…"
    return RequestError("bad_model", f"{path} {problem}")


def shown(value: Any) -> str:
    """Return a value of a file for an error: short, and without control characters."""
    try:
        text = repr(value[: _SHOWN_CHARACTERS + 1] if isinstance(value, str | list) else value)
    except (ValueError, RecursionError):  # more digits than Python writes, or more levels
        return "a value that is too long to show"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _most_bytes(path: Path) -> int:
    return MAX_CONFIG_BYTES if path.name in (CONFIG, GENERATION_CONFIG) else MAX_TEXT_BYTES


def _check_regular(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "something else")
        raise bad_model(path, f"is {kind}, and only regular files are read")
