"""Reasons why an answer ended, as OpenAI's and Ollama's clients know them."""

from typing import Literal, TypeAlias

from ..errors import ApiError

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls"]
_RETRY_S = 1.0


def finish_reason(reason: str) -> FinishReason:
    """Return the worker's finish reason in the clients' terms.

    All limits are `length` to the clients: `max_tokens`, the context length, `timeout_ms` and memory.

    Raises:
        ApiError: The server has cancelled the answer.
    """
    match reason:
        case "stop" | "tool_calls":
            return reason
        case "cancelled":
            message = "the answer was cancelled before its end, because the server ends or unloads the model"
            raise ApiError(503, message, code="cancelled", retry_after=_RETRY_S)
        case _:
            return "length"
