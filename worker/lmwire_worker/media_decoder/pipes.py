"""Frames on the pipes between the worker and a decoder: a kind, a length, and that many bytes."""

import json
import os
import struct
from collections.abc import Callable
from typing import Any, Final

HEAD: Final = struct.Struct(">cQ")
"""The kind of a frame, and the bytes that follow."""
MESSAGE: Final = b"m"
"""JSON: a question, or its answer."""
DATA: Final = b"d"
"""The file after a question; a part of the pixels or samples before an answer."""
MAX_MESSAGE_BYTES: Final = 2**16
"""Maximum length of an answer, in bytes."""


def encode(message: dict[str, Any]) -> bytes:
    """Return the frame of a message."""
    body = json.dumps(message).encode()
    return HEAD.pack(MESSAGE, len(body)) + body


def write(descriptor: int, data: "bytes | memoryview") -> None:
    """Write all of the data. `sys.stdout` can lose bytes of a large write if the process is stopped meanwhile.

    Args:
        descriptor: The pipe.
        data: What to write.
    """
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def write_data(descriptor: int, data: "bytes | memoryview") -> None:
    """Write a frame of data.

    Args:
        descriptor: The pipe.
        data: Its content.
    """
    write(descriptor, HEAD.pack(DATA, len(data)))
    write(descriptor, data)


def read_exactly(receive: Callable[[int], bytes], size: int) -> bytearray:
    """Read a number of bytes.

    Args:
        receive: Returns at most the given number of bytes, and none at the end of the pipe.
        size: Number of bytes.

    Raises:
        EOFError: The pipe has ended.
    """
    data = bytearray()
    while len(data) < size:
        if not (part := receive(min(size - len(data), 2**20))):
            raise EOFError
        data += part
    return data


# The errors of a file that is not decoded.


class RefusedError(Exception):
    """A file cannot be decoded. The sentence follows the field's path, as in "input[0].media.data: is damaged"."""


class MissingLibraryError(Exception):
    """A format's library is not installed.

    Args:
        library: The library's name.
        extra: The extra of lmwire that installs it.
        purpose: What it does, as in "reads images".
    """

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(library)
        self.library = library
        self.extra = extra
        self.purpose = purpose
