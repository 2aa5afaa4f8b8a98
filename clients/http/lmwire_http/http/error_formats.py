"""Formats of errors in the OpenAI, Anthropic and Ollama APIs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from ..errors import ApiError

_OPENAI_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    501: "invalid_request_error",
}
_OPENAI_CODES: Final = {"context_overflow": "context_length_exceeded"}
_OLLAMA_PHRASES: Final = {
    "model_not_found": "model not found",
    "context_overflow": "the input length exceeds the context length",
}
"""Beginnings of Ollama's own errors, by code. Clients search for them, since nothing else tells errors apart."""
_ANTHROPIC_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    501: "invalid_request_error",
    503: "overloaded_error",
    504: "timeout_error",
}


@dataclass(frozen=True)
class ErrorFormat:
    """The format of an API's errors."""

    body: Callable[[ApiError, str], msgspec.Struct]
    """Returns the body of the response to an error, given the request's id."""
    error_type: type[msgspec.Struct]
    """The type that `body` returns."""
    request_id_header: str = "x-request-id"
    """The response header in which this API's clients look for the request id."""
    event_start: bytes = b"data: "
    """The bytes before the body in the event that ends a stream with an error."""
    event_end: bytes = b"\n\n"
    json_type: str = "application/json"
    """The media type of this API's JSON, errors included."""

    def stream_event(self, error: ApiError, request_id: str) -> bytes:
        """Return the encoded event that ends a stream with an error."""
        return self.event_start + msgspec.json.encode(self.body(error, request_id)) + self.event_end


class OpenAIProblem(msgspec.Struct, frozen=True):
    """Details of an OpenAI error."""

    message: str
    type: str
    param: str | None
    """The path of the invalid field, if the error is about one."""
    code: str | None
    """A machine-readable code."""
    retryable: bool
    """True if the same request may succeed later."""
    request_id: str
    n_prompt_tokens: int | msgspec.UnsetType = msgspec.UNSET
    """For a prompt that is too long: its tokens, or as many as it has at least. llama.cpp has this and the next one."""
    n_ctx: int | msgspec.UnsetType = msgspec.UNSET
    """For a prompt that is too long: the tokens that the context holds."""


class OpenAIError(msgspec.Struct, frozen=True):
    """The body of an error response in OpenAI's API."""

    error: OpenAIProblem


class AnthropicDetails(msgspec.Struct, frozen=True):
    """Machine-readable details of an Anthropic error."""

    error_code: str


class AnthropicProblem(msgspec.Struct, frozen=True):
    """Details of an Anthropic error."""

    type: str
    message: str
    details: AnthropicDetails
    retryable: bool
    """True if the same request may succeed later."""


class AnthropicError(msgspec.Struct, frozen=True):
    """The body of an error response in Anthropic's API."""

    error: AnthropicProblem
    request_id: str
    type: Literal["error"] = "error"


class OllamaError(msgspec.Struct, frozen=True):
    """The body of an error response in Ollama's API, and the last line of a failed stream."""

    error: str


def _openai_error(error: ApiError, request_id: str) -> OpenAIError:
    return OpenAIError(
        OpenAIProblem(
            message=error.message,
            type=_openai_type(error),
            param=error.param,
            code=_OPENAI_CODES.get(error.code, error.code),
            retryable=error.retryable,
            request_id=request_id,
            n_prompt_tokens=error.overflow.prompt if error.overflow else msgspec.UNSET,
            n_ctx=error.overflow.context if error.overflow else msgspec.UNSET,
        )
    )


def _openai_type(error: ApiError) -> str:
    if error.code == "context_overflow":
        return "exceed_context_size_error"  # llama.cpp's, whose clients look at the type; OpenAI's look at the code
    return _OPENAI_TYPES.get(error.status, _default_type(error.status, "server_error"))


def _anthropic_error(error: ApiError, request_id: str) -> AnthropicError:
    """Return the error. The format has no field for a parameter, so the message starts with it."""
    problem = AnthropicProblem(
        type=_ANTHROPIC_TYPES.get(error.status, _default_type(error.status, "api_error")),
        message=_with_param(error),
        details=AnthropicDetails(error.code),
        retryable=error.retryable,
    )
    return AnthropicError(problem, request_id)


def _ollama_error(error: ApiError, _: str) -> OllamaError:
    """Return the error. The format has only a message."""
    phrase = _OLLAMA_PHRASES.get(error.code)
    if error.code == "model_not_found":
        return OllamaError(f"{phrase}: {error.message}")
    return OllamaError(f"{phrase}: {_with_param(error)}" if phrase else _with_param(error))


def _with_param(error: ApiError) -> str:
    """Return the message, which starts with the path of the invalid field."""
    named = error.param is None or error.message.lstrip("`").startswith(error.param)
    return error.message if named else f"{error.param}: {error.message}"


def _default_type(status: int, fault: str) -> str:
    return "invalid_request_error" if status < 500 else fault


OPENAI_ERRORS: Final = ErrorFormat(_openai_error, OpenAIError)
ANTHROPIC_ERRORS: Final = ErrorFormat(
    _anthropic_error, AnthropicError, request_id_header="request-id", event_start=b"event: error\ndata: "
)
OLLAMA_ERRORS: Final = ErrorFormat(
    _ollama_error, OllamaError, event_start=b"", event_end=b"\n", json_type="application/json; charset=utf-8"
)
