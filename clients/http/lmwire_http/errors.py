"""What goes wrong, as an HTTP client is told of it. How it is written is the dialects' matter."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from lmwire import (
    LmwireError,
    NotServed,
    RequestFailed,
    RequestTimeout,
    StartFailed,
    WorkerHung,
    WorkerLost,
    WorkerUnavailable,
)

from .settings import Settings

_STATUS: Final = {
    "invalid_request": 400,
    "unsupported": 400,
    "context_overflow": 400,
    "out_of_memory": 400,  # what fits later is queued: this never will
    "model_not_found": 404,
    "line_too_long": 413,
    "busy": 429,
    "cancelled": 503,
    "draining": 503,
    "not_loaded": 503,
    "timeout": 504,
}
"""By the worker's code. Of the others the server is to blame: 500."""
_RETRY_S: Final = 1.0
_NO_HEADERS: Final[Mapping[str, str]] = {}

Rename = Callable[[str], str | None]
"""Makes the path of a field on the wire, as `messages[0].content`, the one that the client wrote, if it wrote one."""


class ApiError(Exception):
    """A request that is answered with an error.

    Args:
        status: The HTTP status.
        message: A sentence: what is wrong, where, and what to do.
        code: A word for programs.
        param: The path of the field that is wrong.
        retry_after: Seconds after which the same request may succeed.
        headers: Further ones of the response.

    Attributes:
        frames: The last events of a stream that ends with it, where the dialect's own would not do.
    """

    frames: bytes | None = None

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param
        self.retry_after, self.headers = retry_after, headers


def check_template(body: object, settings: Settings) -> None:
    """Raise ApiError where a request brings a chat template of its own, unless whoever serves allows that.

    Args:
        body: A request's.
        settings: The server's.
    """
    if not settings.request_templates and getattr(body, "chat_template", None) is not None:
        problem = "this server runs no chat templates of requests; it does when started with --request-templates"
        raise invalid(f"chat_template: {problem}", "chat_template")


def invalid(message: str, param: str | None) -> ApiError:
    """A request that is wrong in one field."""
    return ApiError(400, message, code="invalid_value", param=param)


@contextmanager
def told(rename: Rename) -> Iterator[None]:
    """Raises the client library's errors as ApiError."""
    try:
        yield
    except LmwireError as error:
        raise api_error(error, rename) from error


@contextmanager
def written(rename: Rename) -> Iterator[None]:
    """Raises as ApiError what is wrong with a command's fields together, which its Struct says as `field: problem`."""
    try:
        yield
    except UnicodeError as error:
        raise invalid(f"the body has text that is not valid Unicode: {error}", None) from error
    except ValueError as error:
        field, _, problem = str(error).partition(": ")
        param = rename(field)
        raise invalid(f"{param or field}: {problem}", param) from error


def api_error(error: LmwireError, rename: Rename = lambda field: field) -> ApiError:
    """What a failure of a worker, or of what leads to it, is over HTTP."""
    match error:
        case RequestFailed():
            retry_after = _RETRY_S if error.retryable else None
            param = rename(error.field) if error.field else None
            status = _STATUS.get(error.code, 500)
            message = error.event.error
            if error.field and param and message.lstrip("`").startswith(error.field):
                message = message.replace(error.field, param, 1)
            return ApiError(status, message, code=error.code, param=param, retry_after=retry_after)
        case NotServed():
            return ApiError(400, str(error), code=error.code)
        case RequestTimeout():
            return ApiError(504, str(error), code=error.code)
        case WorkerUnavailable():
            return ApiError(503, str(error), code="worker_unavailable", retry_after=error.retry_after)
        case WorkerHung():
            message = (
                "the model's process hung and was ended, and the request with it; a new one is started for the next"
            )
            return ApiError(503, message, code="worker_lost", retry_after=_RETRY_S)
        case WorkerLost() | StartFailed():
            # What the worker wrote to stderr is for the log, not for whoever is at the other end of the network.
            message = "the model's process has ended, and the request with it; a new one is started for the next"
            return ApiError(503, message, code="worker_lost", retry_after=_RETRY_S)
        case _:
            return ApiError(500, str(error), code="internal")
