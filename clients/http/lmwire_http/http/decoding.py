"""Decoding of request bodies, JSON and multipart forms (RFC 7578), and the errors for those that cannot be decoded.

The whole body is there, so a form is cut at its boundaries, which takes time in proportion to its length.
"""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from python_multipart.multipart import parse_options_header

from ..errors import ApiError, invalid_field, too_many
from ..limits import FORM_HEAD_BYTES, FORM_PARTS
from ..settings import Settings
from .body import check_content_encoding
from .unknown_fields import UnknownFields, fields_at, is_resolvable, names_at

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
_LISTED_FIELDS: Final = 8
"""Most fields of an object that an error about an unknown one lists."""
_UNKNOWN_NAMES: Final = ("Invalid value", "Invalid enum value")
"""Beginnings of a decoder's sentences about a word that is none of those that a field takes."""
_DISPOSITION: Final = b"content-disposition"


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
        raise _validation_error(str(error), type) from error
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
        raise _validation_error(str(error), type) from error


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
        if not is_resolvable(error):
            raise
    known = unknown.resolve(msgspec.json.decode(body), type)
    return msgspec.json.decode(msgspec.json.encode(known), type=type)


def _convert(value: Any, type: type[T], unknown: UnknownFields, *, strict: bool) -> T:
    try:
        return msgspec.convert(value, type, strict=strict)
    except msgspec.ValidationError as error:
        if not is_resolvable(error):
            raise
    return msgspec.convert(unknown.resolve(value, type), type, strict=strict)


def _validation_error(problem: str, type: Any) -> ApiError:
    if len(problem) > 2 * _QUOTED_CHARACTERS:
        problem = f"{problem[:_QUOTED_CHARACTERS]}…{problem[-_QUOTED_CHARACTERS:]}"
    place = _PLACE.search(problem)
    sentence = problem[: place.start()] if place else problem
    path = place["path"].removeprefix(".") if place else ""
    if found := _TOO_LONG.match(sentence):
        return too_many(path, int(found["limit"]), _KINDS[found["kind"]])
    taken: list[str] = []
    if field := _FIELD.search(sentence):
        taken = fields_at(type, path) if path and "unknown field" in sentence else []
        path = f"{path}.{field['name']}" if path else field["name"]
    if 0 < len(taken) <= _LISTED_FIELDS:
        sentence += f"; it takes {_listed(taken, 'and')}"
    if sentence.startswith(_UNKNOWN_NAMES) and (names := names_at(type, path)):
        sentence += f"; must be {_listed(names, 'or')}"
    return invalid_field(f"{path}: {sentence}" if path else sentence, path or None)


def _listed(names: list[str], conjunction: str) -> str:
    return f" {conjunction} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


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
        raise _invalid_form("its content-type names no boundary")
    _, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary, FORM_PARTS + 1)
    if not any(part.startswith(b"--") for part in parts):
        if len(parts) > FORM_PARTS:
            raise _invalid_form(f"it has more than {FORM_PARTS} parts; send fewer")
        raise _invalid_form("its last boundary is missing; send the whole form")
    for part in parts:
        if part.startswith(b"--"):
            return
        yield _part(part)


def _part(part: bytes) -> _Part:
    head, separator, content = part.partition(b"\r\n\r\n")
    if not separator or len(head) > FORM_HEAD_BYTES or not head.lstrip(b" \t").startswith(b"\r\n"):
        raise _invalid_form(f"a part has no head that ends within {FORM_HEAD_BYTES:,} bytes")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == _DISPOSITION:
            options = parse_options_header(value.strip())[1]
            if b"name" in options:
                return _Part(_text(options[b"name"]), content, b"filename" in options)
    raise _invalid_form("a part has no header content-disposition with a name")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _invalid_form(problem: str) -> ApiError:
    return ApiError(400, f"the body is not multipart/form-data: {problem}", code="invalid_form")
