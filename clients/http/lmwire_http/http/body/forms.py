"""Decoding of multipart forms, as RFC 7578 defines them.

The whole body is there, so a form is cut at its boundaries, which takes time in proportion to its length.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from python_multipart.multipart import parse_options_header

from ...errors import ApiError
from ...limits import FORM_HEAD_BYTES, FORM_PARTS
from ..decoding import convert
from ..unknown_fields import UnknownFields

T = TypeVar("T")

_DISPOSITION: Final = b"content-disposition"


class _Part(NamedTuple):
    """A part of a form."""

    name: str
    content: bytes
    is_file: bool


def read_form(headers: Mapping[str, str], body: bytes, type: type[T], unknown: UnknownFields) -> T:
    """Return a form as a typed value. A field `name[]` is a list, and a file is its content.

    Args:
        headers: The request's headers, with names in lower case.
        body: The request's body.
        type: The type of the result.
        unknown: Collects unknown fields.

    Raises:
        ApiError: The body is not a form, it has too many parts, or a field is invalid.
    """
    fields: dict[str, Any] = {}
    for part in _parts(headers.get("content-type", ""), body):
        plain = part.content if part.is_file else _text(part.content)
        if part.name.endswith("[]"):
            fields.setdefault(part.name[:-2], []).append(plain)
        else:
            fields[part.name] = plain
    return convert(fields, type, unknown, strict=False)


def _parts(content_type: str, body: bytes) -> Iterator[_Part]:
    boundary = b""
    if len(content_type) <= FORM_HEAD_BYTES:
        boundary = parse_options_header(content_type)[1].get(b"boundary", b"")
    if not boundary:
        raise _invalid("its content-type names no boundary")
    _, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary, FORM_PARTS + 1)
    if not any(part.startswith(b"--") for part in parts):
        if len(parts) > FORM_PARTS:
            raise _invalid(f"it has more than {FORM_PARTS} parts; send fewer")
        raise _invalid("its last boundary is missing; send the whole form")
    for part in parts:
        if part.startswith(b"--"):
            return
        yield _part(part)


def _part(part: bytes) -> _Part:
    head, separator, content = part.partition(b"\r\n\r\n")
    if not separator or len(head) > FORM_HEAD_BYTES or not head.lstrip(b" \t").startswith(b"\r\n"):
        raise _invalid(f"a part has no head that ends within {FORM_HEAD_BYTES:,} bytes")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == _DISPOSITION:
            options = parse_options_header(value.strip())[1]
            if b"name" in options:
                return _Part(_text(options[b"name"]), content, b"filename" in options)
    raise _invalid("a part has no header content-disposition with a name")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _invalid(problem: str) -> ApiError:
    return ApiError(400, f"the body is not multipart/form-data: {problem}", code="invalid_form")
