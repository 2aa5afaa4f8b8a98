"""Server-sent events as OpenAI's APIs write them, and the names that their replies have."""

import uuid
from typing import Final

import msgspec

_encode: Final = msgspec.json.Encoder().encode

DONE: Final = b"data: [DONE]\n\n"
"""The last event of a stream."""


def data(value: object) -> bytes:
    """An event without a name."""
    return b"data: " + _encode(value) + b"\n\n"


def new_id(kind: str) -> str:
    """A reply's id, as `chatcmpl-…`."""
    return f"{kind}-{uuid.uuid4().hex}"
