"""Endpoints as data. Routes, metrics and the OpenAPI document are made from them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .error_formats import OPENAI_ERRORS, ErrorFormat
from .replies import Reply
from .unknown_fields import Alias

if TYPE_CHECKING:
    from ..errors import ApiError
    from .context import RequestContext


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One method of one path.

    Args:
        method: The HTTP method: `GET`, `POST` or `DELETE`.
        path: The path, such as `/v1/models/{model:path}`.
        summary: A line for the OpenAPI document.
        handler: Handles a request: receives its context and its body, or None without a body. Raises ApiError.
        error_format: The format of errors.
        request_type: The Struct of the body; None without a body.
        aliases: Other names of the body's fields, as other servers have them.
        is_form: Whether the body is multipart/form-data. An uploaded file is a field of type bytes.
        takes_curl_type: Whether JSON may have the media type that curl sends by default.
        response_type: The type of the JSON response; None without one.
        text_media_types: Media types that the response can have instead.
        event_type: The type of a stream's events, if the response can be a stream of server-sent events.
        line_type: The type of a stream's lines, if the response can be a stream of lines.
        status_types: The types of JSON responses with other statuses, errors excluded.
        error_statuses: Statuses of errors that other endpoints do not have.
        is_public: Whether no API key is needed.
        required_header: A header, in lower case, without which another endpoint of the same path serves a request.
        always_fails_with: Returns the error for every request, before its body is read; None for real endpoints.
    """

    method: str
    path: str
    summary: str
    handler: "Callable[[RequestContext, Any], Awaitable[Reply]]"
    error_format: ErrorFormat = OPENAI_ERRORS
    request_type: Any = None
    aliases: Mapping[str, Alias] = field(default_factory=dict[str, Alias])
    is_form: bool = False
    takes_curl_type: bool = False
    response_type: Any = None
    text_media_types: Sequence[str] = ()
    event_type: Any = None
    line_type: Any = None
    status_types: Mapping[int, Any] = field(default_factory=dict[int, Any])
    error_statuses: Sequence[int] = ()
    is_public: bool = False
    required_header: str | None = None
    always_fails_with: "Callable[[], ApiError] | None" = None
