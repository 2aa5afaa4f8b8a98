"""Messages between the worker and a sandbox: JSON with its length before it."""

import json
from collections.abc import Callable
from typing import Any, Final

LENGTH_BYTES: Final = 8


def encode(message: Any) -> bytes:
    """Return a message as it goes through a pipe. Lone surrogates, which a template can write, come through."""
    body = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return len(body).to_bytes(LENGTH_BYTES) + body


def read(receive: Callable[[int], bytes]) -> Any:
    """Read the next message.

    Args:
        receive: Returns exactly so many bytes, or fewer at the end of the pipe.

    Raises:
        EOFError: The pipe has ended.
    """
    length = int.from_bytes(_exactly(receive, LENGTH_BYTES))
    return json.loads(_exactly(receive, length).decode("utf-8", "surrogatepass"))


def _exactly(receive: Callable[[int], bytes], size: int) -> bytes:
    data = receive(size)
    if len(data) < size:
        raise EOFError
    return data
