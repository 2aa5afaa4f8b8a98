"""Request bodies read into Structs, and what is said of those that cannot be."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from ..errors import ApiError, invalid

T = TypeVar("T")

_JSON: Final = re.compile(r"application/(?:[\w.-]+\+)?json\s*(?:;|$)", re.IGNORECASE)
_PLACE: Final = re.compile(r" - at `(?:key` in `)?\$(?P<path>[^`]*)`$")
_FIELD: Final = re.compile(r"(?:unknown|required) field `(?P<name>[^`]*)`")


def check_media_type(headers: Mapping[str, str], *, form: bool) -> None:
    """Refuse a body that cannot be read, by what the request's head says of it.

    A body without a type is taken. One with a type that any web page may send, such as text/plain, is not: a form on a
    page must not start a generation.

    Args:
        headers: Names in lower case.
        form: Whether the endpoint reads a form, and not JSON.

    Raises:
        ApiError: it is of another type, or compressed.
    """
    if headers.get("content-encoding", "").strip().lower() not in {"", "identity"}:
        problem = "the body must not be compressed: send it without the header content-encoding"
        raise ApiError(415, problem, code="unsupported_media_type")
    given = headers.get("content-type", "")
    if form and not given.lower().startswith("multipart/form-data"):
        raise ApiError(415, "the body must be multipart/form-data", code="unsupported_media_type")
    if not form and given and not _JSON.match(given):
        problem = "the body must be JSON, with the header content-type: application/json"
        raise ApiError(415, problem, code="unsupported_media_type")


def decode(body: bytes, type: type[T]) -> T:
    """The body as what an endpoint takes.

    Raises:
        ApiError: it is not that. The error names the field.
    """
    try:
        return msgspec.json.decode(body, type=type)
    except msgspec.ValidationError as error:
        raise _refusal(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(400, f"the body is not JSON: {error}", code="invalid_json") from error
    except RecursionError as error:
        raise ApiError(400, "the body is nested too deeply", code="invalid_json") from error


def convert(value: Any, type: type[T], *, strict: bool = True) -> T:
    """The same for plain data, as of a form, where numbers are texts: `strict` is False there."""
    try:
        return msgspec.convert(value, type, strict=strict)
    except msgspec.ValidationError as error:
        raise _refusal(str(error)) from error


def _refusal(problem: str) -> ApiError:
    place = _PLACE.search(problem)
    sentence = problem[: place.start()] if place else problem
    path = place["path"].removeprefix(".") if place else ""
    if field := _FIELD.search(sentence):
        path = f"{path}.{field['name']}" if path else field["name"]
    return invalid(f"{path}: {sentence}" if path else sentence, path or None)
