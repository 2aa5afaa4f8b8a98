"""API keys, read at the start and checked in requests, and the clients between which a model's queue is fair."""

import hmac
import os
import re
import stat
from collections.abc import Hashable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from ..errors import ApiError

ENVIRONMENT_VARIABLE: Final = "LMWIRE_API_KEY"
_MAX_FILE_BYTES: Final = 1024 * 1024
_OTHER_USERS: Final = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH
_KEY: Final = re.compile(r"[\x21-\x7e]+")
Peer = tuple[str, int]
"""Address and port of a connection's other end."""


class InvalidApiKeys(ValueError):
    """An invalid API key or key file. The message does not repeat the key."""


def read_api_keys(typed: Sequence[str], file: Path | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of the command line, of a file with one key per line, and of the environment.

    Args:
        typed: Keys of the command line.
        file: The key file, if there is one.
        environment: The environment variables.

    Raises:
        InvalidApiKeys: A key is invalid or the file has none. The server must not run without keys by mistake.
    """
    keys = [_check_syntax(key, "--api-key") for key in typed]
    if file is not None:
        keys += _from_file(file)
    if ENVIRONMENT_VARIABLE in environment:
        keys.append(_check_syntax(environment[ENVIRONMENT_VARIABLE], f"${ENVIRONMENT_VARIABLE}"))
    return tuple(dict.fromkeys(keys))


def exposure_warning(option: str, path: Path) -> str | None:
    """Return a warning if other users of this machine can read or change a file with keys; None otherwise.

    Args:
        option: The option that names the file.
        path: The file.
    """
    mode = stat.S_IMODE(path.stat().st_mode)
    if not mode & _OTHER_USERS:
        return None
    return f"{option}: other users can read or change {path} (mode {mode:04o}): chmod 600 {path}"


def _from_file(path: Path) -> list[str]:
    try:
        lines = _read_regular_file(path).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidApiKeys(f"--api-key-file: cannot read {path}: {error}") from error
    numbered = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    keys = [
        _check_syntax(line, f"--api-key-file: line {number} of {path}") for number, line in numbered if line[0] != "#"
    ]
    if not keys:
        raise InvalidApiKeys(f"--api-key-file: {path} has no key: write one a line; lines with # are comments")
    return keys


def _read_regular_file(path: Path) -> bytes:
    """Return a file's content.

    Raises:
        InvalidApiKeys: The file is too long, or is a device, a pipe or a directory, which may block or never end.
        OSError: The file cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidApiKeys(f"--api-key-file: {path} is not a regular file")
        if status.st_size > _MAX_FILE_BYTES:
            raise InvalidApiKeys(f"--api-key-file: {path} is longer than {_MAX_FILE_BYTES:,} bytes")
        return os.read(descriptor, _MAX_FILE_BYTES)
    finally:
        os.close(descriptor)


def _check_syntax(key: str, where: str) -> str:
    if not _KEY.fullmatch(key):
        raise InvalidApiKeys(
            f"{where} is not an API key: a key is one or more printable ASCII characters, without spaces"
        )
    return key


def find_api_key(headers: Mapping[str, str], keys: Sequence[str]) -> int | None:
    """Return the number of the key that a request has, as `Authorization: Bearer KEY` or as `x-api-key: KEY`.

    Args:
        headers: The request's headers, with names in lower case.
        keys: The server's keys. Without keys every request passes, and the number is None.

    Raises:
        ApiError: The request has no valid key. The time that the check takes reveals only the keys' lengths.
    """
    if not keys:
        return None
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    given = [text.encode() for text in (bearer, headers.get("x-api-key", "")) if text]
    # Every key is compared, so that the time does not reveal which one matched in part.
    found = [number for text in given for number, key in enumerate(keys) if hmac.compare_digest(text, key.encode())]
    if not found:
        problem = "this API key is not valid here" if given else "an API key is needed: Authorization: Bearer KEY"
        raise ApiError(401, problem, code="invalid_api_key")
    return found[0]


def identify_client(peer: Peer | None, key: int | None, keys: Sequence[str]) -> Hashable:
    """Return a value that is equal for requests of the same client.

    With several API keys the key identifies the client. Otherwise its address does. Clients on this machine share one
    address, so there each connection counts as a client.

    Args:
        peer: The connection's other end; None if unknown.
        key: The number of the request's API key; None without one.
        keys: The server's API keys.
    """
    if len(keys) > 1:
        return key
    if peer is None:
        return None
    address, _ = peer
    return peer if _is_this_machine(address) else address


def _is_this_machine(address: str) -> bool:
    """Return whether all clients with this address are on this machine: a loopback address or a Unix socket."""
    try:
        found = ip_address(address)
    except ValueError:
        return True
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
