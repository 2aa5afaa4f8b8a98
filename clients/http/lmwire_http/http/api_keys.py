"""API keys: where they come from, and who has one."""

import hmac
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ..errors import ApiError

VARIABLE: Final = "LMWIRE_API_KEY"
_FILE_BYTES: Final = 1024 * 1024
_OTHERS: Final = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH
_KEY: Final = re.compile(r"[\x21-\x7e]+")


class BadKeys(ValueError):
    """What was given for a key can be none. The message does not repeat it."""


def given_keys(typed: Sequence[str], file: Path | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of the command line, of a file with one a line, and of the environment.

    Raises:
        BadKeys: one of them is no key, or the file has none: a server must not be open by mistake.
    """
    keys = [_checked(key, "--api-key") for key in typed]
    if file is not None:
        keys += _from_file(file)
    if VARIABLE in environment:
        keys.append(_checked(environment[VARIABLE], f"${VARIABLE}"))
    return tuple(dict.fromkeys(keys))


def exposure(path: Path) -> str | None:
    """Return a sentence if other users of this machine can read or change a file of keys, else None."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if not mode & _OTHERS:
        return None
    return f"--api-key-file: other users can read or change {path} (mode {mode:04o}): chmod 600 {path}"


def _from_file(path: Path) -> list[str]:
    try:
        lines = _read_regular(path).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadKeys(f"--api-key-file: cannot read {path}: {error}") from error
    numbered = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    keys = [_checked(line, f"--api-key-file: line {number} of {path}") for number, line in numbered if line[0] != "#"]
    if not keys:
        raise BadKeys(f"--api-key-file: {path} has no key: write one a line; lines with # are comments")
    return keys


def _read_regular(path: Path) -> bytes:
    """Return a file's content.

    Raises:
        BadKeys: it is a device, a pipe or a directory, reading which may never end, or it is too long.
        OSError: it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BadKeys(f"--api-key-file: {path} is not a regular file")
        if status.st_size > _FILE_BYTES:
            raise BadKeys(f"--api-key-file: {path} is longer than {_FILE_BYTES:,} bytes")
        return os.read(descriptor, _FILE_BYTES)
    finally:
        os.close(descriptor)


def _checked(key: str, where: str) -> str:
    if not _KEY.fullmatch(key):
        raise BadKeys(f"{where} is no API key: a key is one or more printable ASCII characters, without spaces")
    return key


def check_key(headers: Mapping[str, str], keys: Sequence[str]) -> None:
    """Lets a request pass that brings one of the keys, as `Authorization: Bearer KEY` or as `x-api-key: KEY`.

    Raises:
        ApiError: it brings none of them. How long that takes tells nothing of the keys but their lengths.
    """
    if not keys:
        return
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    given = [text.encode() for text in (bearer, headers.get("x-api-key", "")) if text]
    # Not any(): every key is compared, so that the time does not tell which one came close.
    if not sum([hmac.compare_digest(text, key.encode()) for text in given for key in keys]):
        problem = "this API key is not known here" if given else "an API key is needed: Authorization: Bearer KEY"
        raise ApiError(401, problem, code="invalid_api_key")
