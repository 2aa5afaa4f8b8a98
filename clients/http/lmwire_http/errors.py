"""HTTP errors, and the mapping from worker errors to them. The format on the wire is in `http.error_formats`."""

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from lmwire import (
    LmwireError,
    RequestFailed,
    RequestTimeout,
    StartFailed,
    UnsupportedByWorker,
    WorkerHung,
    WorkerLost,
    WorkerUnavailable,
)

_STATUS_OF_CODE: Final = {
    "invalid_request": 400,
    "context_overflow": 400,
    "model_not_found": 404,
    "line_too_long": 413,
    "busy": 429,
    "cancelled": 503,
    "draining": 503,
    "not_loaded": 503,
    "unsupported": 501,
    "timeout": 504,
    "out_of_memory": 507,  # a request that fits later is queued: this one never fits
}
"""HTTP status for each code of a worker error. Other codes are the server's fault: 500."""
_RETRYABLE_STATUSES: Final = (408, 429, 503)
_RETRY_S: Final = 1.0
_NO_HEADERS: Final[Mapping[str, str]] = {}
_PIPE_ADVICE: Final = re.compile(r"; `force` [^;]*$")
"""Advice for a load that only a host on the pipe can follow."""
_HTTP_ADVICE: Final = "; serve a smaller model"
MAX_MESSAGE_CHARS: Final = 4096
"""Longest message of an error, and longest path of its field: both may repeat what the client sent."""

_OVERFLOW: Final = re.compile(r"\b(\d+) tokens(?: at least)?, and the (?:context holds|model takes) (\d+)\b")
"""The part of a worker's error with the length of the prompt and that of the context."""

RenameField = Callable[[str], str | None]
"""Maps the path of a worker's field, such as `messages[0].content`, to the client's path, if the client wrote one."""


class Overflow(NamedTuple):
    """A prompt that the context cannot hold, in tokens."""

    prompt: int
    context: int


class ApiError(Exception):
    """An error response to a request.

    Args:
        status: The HTTP status.
        message: A sentence that says what was wrong, where, and what to do.
        code: A machine-readable code.
        param: The path of the invalid field.
        retry_after: Seconds after which the same request may succeed.
        headers: Further response headers.
        overflow: The lengths of a prompt that is too long, if they are known.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
        overflow: Overflow | None = None,
    ) -> None:
        message = _shortened(message)
        super().__init__(message)
        self.status, self.message, self.code = status, message, code
        self.param = param and _shortened(param)
        self.retry_after, self.headers, self.overflow = retry_after, headers, overflow

    @property
    def retryable(self) -> bool:
        """Return whether the same request may succeed later."""
        return self.retry_after is not None or self.status in _RETRYABLE_STATUSES


def _shortened(text: str) -> str:
    """Return a text without its middle if it is too long: the field is at its start, and the advice at its end."""
    half = MAX_MESSAGE_CHARS // 2
    return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[: half - 1]}…{text[-half:]}"


def invalid_field(message: str, param: str | None) -> ApiError:
    """Return the error for a request with one invalid field.

    Args:
        message: A sentence that says what was wrong and what to do.
        param: The path of the field.
    """
    return ApiError(400, message, code="invalid_value", param=param)


def too_many(field: str, limit: int, what: str = "items") -> ApiError:
    """Return the error for a list or a map that is too long.

    Args:
        field: The path of the field; empty for the body itself.
        limit: Its limit.
        what: What there are too many of.
    """
    return invalid_field(f"{field or 'the body'}: has more than {limit:,} {what}, the limit; send fewer", field or None)


@contextmanager
def translate_worker_errors(rename: RenameField) -> Generator[None]:
    """Raise the client library's errors as ApiError.

    Args:
        rename: Maps field paths to those of the client.
    """
    try:
        yield
    except LmwireError as error:
        raise api_error(error, rename) from error


@contextmanager
def translate_value_errors(rename: RenameField) -> Generator[None]:
    """Raise ValueErrors of the form `field: problem` as ApiError. The wire's Structs raise them for invalid commands.

    Args:
        rename: Maps field paths to those of the client.
    """
    try:
        yield
    except UnicodeError as error:
        raise invalid_field(f"the body has text that is not valid Unicode: {error}", None) from error
    except ValueError as error:
        field, _, problem = str(error).partition(": ")
        param = rename(field)
        raise invalid_field(f"{param or field}: {problem}", param) from error


def api_error(error: LmwireError, rename: RenameField = lambda field: field) -> ApiError:
    """Return the HTTP error for an error of a worker or of its start.

    Args:
        error: The client library's error.
        rename: Maps field paths to those of the client.
    """
    match error:
        case RequestFailed():
            retry_after = _RETRY_S if error.retryable else None
            param = rename(error.field) if error.field else None
            # A field that cannot be honoured is the client's to change, as in OpenAI's own API.
            status = 400 if error.code == "unsupported" and param else _STATUS_OF_CODE.get(error.code, 500)
            message = _PIPE_ADVICE.sub(_HTTP_ADVICE, error.event.error)
            if error.field and param and message.lstrip("`").startswith(error.field):
                message = message.replace(error.field, param, 1)
            found = _OVERFLOW.search(message) if error.code == "context_overflow" else None
            overflow = found and Overflow(int(found[1]), int(found[2]))
            return ApiError(status, message, code=error.code, param=param, retry_after=retry_after, overflow=overflow)
        case UnsupportedByWorker():
            return ApiError(501, str(error), code=error.code)
        case RequestTimeout():
            return ApiError(504, str(error), code=error.code)
        case WorkerUnavailable():
            return ApiError(503, str(error), code="worker_unavailable", retry_after=error.retry_after)
        case WorkerHung():
            message = (
                "the model's process hung and was ended, and this request with it; the next request starts a new one"
            )
            return ApiError(503, message, code="worker_lost", retry_after=_RETRY_S)
        case WorkerLost() | StartFailed():
            # The worker's stderr belongs in the log. Network clients must not see it.
            message = "the model's process has exited, and this request with it; the next request starts a new one"
            return ApiError(503, message, code="worker_lost", retry_after=_RETRY_S)
        case _:
            return ApiError(500, "the server has failed on this request; see its log", code="internal")
