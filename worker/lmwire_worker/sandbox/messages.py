"""Messages between the worker and a sandbox: JSON, after its length in 8 bytes."""

import json
from collections.abc import Callable
from typing import Any, Final

LENGTH_BYTES: Final = 8


def encode(message: Any) -> bytes:
    """Return the bytes of a message. They preserve lone surrogates, which a template can write."""
    body = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return len(body).to_bytes(LENGTH_BYTES) + body


def read(receive: Callable[[int], bytes]) -> Any:
    """Read the next message.

    Args:
        receive: Returns the given number of bytes, or fewer at the end of the pipe.

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
