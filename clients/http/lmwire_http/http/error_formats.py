"""How the two families of APIs write an error."""

from dataclasses import dataclass
from typing import Final, Literal, Protocol

import msgspec

from ..errors import ApiError


class Dialect(Protocol):
    """How errors are written."""

    @property
    def error(self) -> type[msgspec.Struct]:
        """What `body` returns."""
        ...

    @property
    def id_header(self) -> str:
        """The response's header in which its clients look for the request's id."""
        ...

    def body(self, error: ApiError, request_id: str) -> msgspec.Struct:
        """Of a response."""
        ...

    def frame(self, error: ApiError, request_id: str) -> bytes:
        """The last event of a stream."""
        ...


class OpenAIProblem(msgspec.Struct, frozen=True):
    """What is wrong."""

    message: str
    type: str
    param: str | None
    """The path of the field that is wrong, if one is."""
    code: str | None
    """A word for programs."""


class OpenAIError(msgspec.Struct, frozen=True):
    """An error as api.openai.com writes it."""

    error: OpenAIProblem


class AnthropicDetails(msgspec.Struct, frozen=True):
    """What there is for programs."""

    error_code: str


class AnthropicProblem(msgspec.Struct, frozen=True):
    """What is wrong."""

    type: str
    message: str
    details: AnthropicDetails


class AnthropicError(msgspec.Struct, frozen=True):
    """An error as api.anthropic.com writes it."""

    error: AnthropicProblem
    request_id: str
    type: Literal["error"] = "error"


@dataclass(frozen=True)
class OpenAI:
    """As api.openai.com does."""

    @property
    def error(self) -> type[OpenAIError]:
        """See `Dialect`."""
        return OpenAIError

    @property
    def id_header(self) -> str:
        """See `Dialect`."""
        return "x-request-id"

    def body(self, error: ApiError, request_id: str) -> OpenAIError:
        """See `Dialect`."""
        return OpenAIError(
            OpenAIProblem(
                message=error.message,
                type=_OPENAI_TYPES.get(error.status, _fallback(error.status, "server_error")),
                param=error.param,
                code=_OPENAI_CODES.get(error.code, error.code),
            )
        )

    def frame(self, error: ApiError, request_id: str) -> bytes:
        """See `Dialect`."""
        return b"data: " + msgspec.json.encode(self.body(error, request_id)) + b"\n\n"


@dataclass(frozen=True)
class Anthropic:
    """As api.anthropic.com does."""

    @property
    def error(self) -> type[AnthropicError]:
        """See `Dialect`."""
        return AnthropicError

    @property
    def id_header(self) -> str:
        """See `Dialect`."""
        return "request-id"

    def body(self, error: ApiError, request_id: str) -> AnthropicError:
        """See `Dialect`. There is no field for a parameter: the message begins with it."""
        named = error.param is None or error.message.lstrip("`").startswith(error.param)
        problem = AnthropicProblem(
            type=_ANTHROPIC_TYPES.get(error.status, _fallback(error.status, "api_error")),
            message=error.message if named else f"{error.param}: {error.message}",
            details=AnthropicDetails(error.code),
        )
        return AnthropicError(problem, request_id)

    def frame(self, error: ApiError, request_id: str) -> bytes:
        """See `Dialect`."""
        return b"event: error\ndata: " + msgspec.json.encode(self.body(error, request_id)) + b"\n\n"


OPENAI: Final = OpenAI()
ANTHROPIC: Final = Anthropic()

_OPENAI_TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_OPENAI_CODES: Final = {"context_overflow": "context_length_exceeded"}
_ANTHROPIC_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def _fallback(status: int, fault: str) -> str:
    return "invalid_request_error" if status < 500 else fault
