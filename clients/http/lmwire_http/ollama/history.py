"""`context` of /api/generate: the conversation so far, in numbers that a client keeps and sends back unchanged.

Ollama's numbers are token ids. These are the bytes of the messages as JSON, so that the chat template writes the whole
conversation, and the model's cache has its beginning. Images are not in them.
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from lmwire import MessageDict

from ..errors import ApiError, invalid_field
from ..http.body import weigh
from ..limits import Messages


class _Said(Struct, kw_only=True, forbid_unknown_fields=True):
    """A message of the conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


_decode: Final = msgspec.json.Decoder(Annotated[Messages[_Said], Meta(min_length=1)]).decode


def read_context(context: Sequence[int]) -> list[MessageDict]:
    """Return the conversation of a request's context.

    Args:
        context: The numbers of an earlier answer.

    Raises:
        ApiError: The numbers are not from this server.
    """
    try:
        weigh(text := bytes(context))
        return [{"role": said.role, "content": said.content} for said in _decode(text)]
    except (ValueError, RecursionError, ApiError):
        problem = "context: is not from an answer of this server; leave it out, or send the conversation to /api/chat"
        raise invalid_field(problem, "context") from None


def write_context(messages: Sequence[MessageDict], answer: str) -> list[int]:
    """Return the numbers of a conversation and its newest answer.

    Args:
        messages: The conversation up to the question.
        answer: The answer.
    """
    said = [_Said(role=_role(message), content=_text(message)) for message in messages]
    return list(msgspec.json.encode([*said, _Said(role="assistant", content=answer)]))


def _role(message: MessageDict) -> Literal["system", "user", "assistant"]:
    return "user" if message["role"] in ("tool", "developer") else message["role"]  # pyright: ignore[reportReturnType]


def _text(message: MessageDict) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if isinstance(part, dict) and part["type"] == "text")
