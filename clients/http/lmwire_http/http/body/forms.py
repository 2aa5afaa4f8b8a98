"""Decoding of multipart forms."""

from collections.abc import AsyncGenerator
from typing import Any, TypeVar

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartParser

from .decoding import convert
from .unknown_fields import UnknownFields

T = TypeVar("T")


async def read_form(headers: Headers, body: bytes, type: type[T], unknown: UnknownFields) -> T:
    """Return a form as a typed value. A field `name[]` is a list, and a file is its content.

    Args:
        headers: The request's headers.
        body: The request's body.
        type: The type of the result.
        unknown: Collects unknown fields.

    Raises:
        ApiError: A field is invalid.
        MultiPartException: The body is not a multipart form.
    """
    form = await MultiPartParser(headers, _whole(body), max_part_size=len(body) + 1).parse()
    fields: dict[str, Any] = {}
    for name, value in form.multi_items():
        plain = await value.read() if isinstance(value, UploadFile) else value
        if name.endswith("[]"):
            fields.setdefault(name[:-2], []).append(plain)
        else:
            fields[name] = plain
    await form.close()
    return convert(fields, type, unknown, strict=False)


async def _whole(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body
    yield b""
