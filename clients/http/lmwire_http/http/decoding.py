"""Decoding of request bodies, and the errors for those that cannot be decoded."""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from ..errors import ApiError, invalid_field, too_many
from ..settings import Settings
from .body.request_body import check_content_encoding
from .unknown_fields import UnknownFields, is_unknown_field

T = TypeVar("T")

_JSON: Final = re.compile(r"application/(?:[\w.-]+\+)?json\s*(?:;|$)", re.IGNORECASE)
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*[\"']?(?P<name>[^\"';\s]+)", re.IGNORECASE)
_UTF8_NAMES: Final = ("utf-8", "utf8", "us-ascii", "ascii")
_CURL_TYPE: Final = "application/x-www-form-urlencoded"
_PLACE: Final = re.compile(r" - at `(?:key` in `)?\$(?P<path>[^`]*)`$")
_QUOTED_CHARACTERS: Final = 2048
"""Characters of a decoder's sentence at its start and at its end. It quotes the body, which may be long."""
_TOO_LONG: Final = re.compile(r"Expected `(?P<kind>array|object)` of length <= (?P<limit>\d+)")
_KINDS: Final = {"array": "items", "object": "members"}
_FIELD: Final = re.compile(r"(?:unknown|required) field `(?P<name>[^`]*)`")


def check_media_type(headers: Mapping[str, str], *, form: bool, takes_curl_type: bool = False) -> None:
    """Check that the request's headers announce a body that the endpoint can decode.

    A body without a type is accepted. Types that any web page can send, such as text/plain, are not: a page must not be
    able to start a generation.

    Args:
        headers: The request's headers, with names in lower case.
        form: Whether the endpoint reads a form instead of JSON.
        takes_curl_type: Whether the type that curl sends by default is accepted, since Ollama's examples have it. A web
            page can send it, too, but only with the header Origin, which the origin guard checks.

    Raises:
        ApiError: The body has another type, character encoding or compression.
    """
    check_content_encoding(headers.get("content-encoding", ""))
    given = headers.get("content-type", "")
    if form and not given.lower().startswith("multipart/form-data"):
        raise ApiError(415, "the body must be multipart/form-data", code="unsupported_media_type")
    if takes_curl_type and given == _CURL_TYPE:
        return
    if not form and given and not _JSON.match(given):
        problem = "the body must be JSON, with the header content-type: application/json"
        raise ApiError(415, problem, code="unsupported_media_type")
    if not form and (charset := _CHARSET.search(given)) and charset["name"].lower() not in _UTF8_NAMES:
        problem = f"the body must be UTF-8, and its content-type says {charset['name'][:40]}: send it as UTF-8"
        raise ApiError(415, problem, code="unsupported_media_type")


def decode_json(body: bytes, type: type[T], unknown: UnknownFields) -> T:
    """Return the decoded JSON body. It may begin with a byte order mark.

    Args:
        body: The request's body.
        type: The type of the result.
        unknown: Renames aliases, and collects unknown fields.

    Raises:
        ApiError: The body is not valid JSON of that type. The error names the field.
    """
    try:
        return _decode(body.removeprefix(BOM_UTF8), type, unknown)
    except msgspec.ValidationError as error:
        raise _validation_error(str(error)) from error
    except (msgspec.DecodeError, UnicodeError) as error:
        problem = "it is not UTF-8; send it as UTF-8" if _is_other_unicode(body) else str(error)
        raise ApiError(400, f"the body is not JSON: {problem}", code="invalid_json") from error
    except RecursionError as error:
        raise ApiError(400, "the body is nested too deeply", code="invalid_json") from error


def convert(value: Any, type: type[T], unknown: UnknownFields, *, strict: bool = True) -> T:
    """Return plain data as a typed value.

    Args:
        value: The data.
        type: The type of the result.
        unknown: Renames aliases, and collects unknown fields.
        strict: Whether strings are not accepted as numbers, which they are in forms.

    Raises:
        ApiError: The data is invalid. The error names the field.
    """
    try:
        return _convert(value, type, unknown, strict=strict)
    except msgspec.ValidationError as error:
        raise _validation_error(str(error)) from error


def check_template(body: object, settings: Settings) -> None:
    """Check that a request sends no chat template, unless the server allows that.

    Args:
        body: The request's decoded body.
        settings: The server's settings.

    Raises:
        ApiError: The request sends a chat template.
    """
    if not settings.request_templates and getattr(body, "chat_template", None) is not None:
        problem = "this server runs no chat templates of requests; it does when started with --request-templates"
        raise invalid_field(f"chat_template: {problem}", "chat_template")


def _is_other_unicode(body: bytes) -> bool:
    """Return whether a body is UTF-16 or UTF-32: their bytes of ASCII characters contain zeros, and JSON has none."""
    return body.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or b"\0" in body[:4]


def _decode(body: bytes, type: type[T], unknown: UnknownFields) -> T:
    try:
        return msgspec.json.decode(body, type=type)
    except msgspec.ValidationError as error:
        if not is_unknown_field(error):
            raise
    known = unknown.resolve(msgspec.json.decode(body), type)
    return msgspec.json.decode(msgspec.json.encode(known), type=type)


def _convert(value: Any, type: type[T], unknown: UnknownFields, *, strict: bool) -> T:
    try:
        return msgspec.convert(value, type, strict=strict)
    except msgspec.ValidationError as error:
        if not is_unknown_field(error):
            raise
    return msgspec.convert(unknown.resolve(value, type), type, strict=strict)


def _validation_error(problem: str) -> ApiError:
    if len(problem) > 2 * _QUOTED_CHARACTERS:
        problem = f"{problem[:_QUOTED_CHARACTERS]}…{problem[-_QUOTED_CHARACTERS:]}"
    place = _PLACE.search(problem)
    sentence = problem[: place.start()] if place else problem
    path = place["path"].removeprefix(".") if place else ""
    if found := _TOO_LONG.match(sentence):
        return too_many(path, int(found["limit"]), _KINDS[found["kind"]])
    if field := _FIELD.search(sentence):
        path = f"{path}.{field['name']}" if path else field["name"]
    return invalid_field(f"{path}: {sentence}" if path else sentence, path or None)
