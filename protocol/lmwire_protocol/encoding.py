"""Encoding of commands and events to lines. Every event line is shorter than `LINE_OUT_BYTES`."""

import base64
import math
import sys
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from .commands import Command
from .errors import RequestError
from .events import Embedding, Error, Event, Logprob, Token, ToolCall
from .framing import escape_separators
from .limits import EMBEDDING_VALUES, ERROR_BYTES, TOKEN_IDS

if TYPE_CHECKING:
    from .json_value import JsonValue

_FINITE: Final = frozenset({int, str, bool})
"""Types of values that are finite, whatever they are. A prompt can be a list of a million of them."""
_encode = msgspec.json.Encoder().encode

# A character takes at most 6 bytes in JSON, a token id and its comma at most 8: text and ids of one event stay
# under 24 and 32 KiB, and the line under 60. An event with log-probabilities has few ids, so most of the line is for
# its log-probabilities. A single entry always fits into a line without text.
_TEXT_CHARACTERS = 4000
_LOGPROBS_BYTES = 24 * 1024
_FIELD_CHARACTERS = 256


def encode_command(id: str, command: Command) -> bytes:
    """Return a command as a line: `id` first, and without the fields that have their default.

    Args:
        id: The request's id.
        command: The command.

    Raises:
        ValueError: A number is not finite, which JSON cannot represent.
    """
    fields = _encode(command)
    if b"null" in fields:  # the encoder writes numbers that are not finite as null
        _check_finite(msgspec.to_builtins(command), "")
    head = b'{"id":' + _encode(id) + b',"cmd":' + _encode(command.name)
    return head + (b"}\n" if fields == b"{}" else b"," + fields[1:] + b"\n")


def _check_finite(value: "JsonValue", path: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path}: {value} is not a finite number")
    if isinstance(value, dict):
        for name, member in value.items():
            _check_finite(member, f"{path}.{name}" if path else name)
    elif isinstance(value, (list, tuple)) and not _FINITE.issuperset(map(type, value)):
        for index, item in enumerate(value):
            _check_finite(item, f"{path}[{index}]")


def encode_event(event: Event) -> bytes:
    """Return an event as a line. Use `encode_tokens` for tokens: it splits them at the limits."""
    return escape_separators(_encode(event)) + b"\n"


def encode_tokens(token: Token) -> bytes:
    """Return a token event as lines: one, or several if it exceeds the limits of one line."""
    text, ids = token.token, token.token_ids
    if token.logprobs is None and len(text) <= _TEXT_CHARACTERS and len(ids) <= TOKEN_IDS:
        return encode_event(token)
    lines: list[bytes] = []
    at = first = 0
    while at < len(text) or first < len(ids) or not lines:
        logprobs = (token.logprobs or [])[first : first + TOKEN_IDS]
        characters, count = _split_to_fit(logprobs) if logprobs else (_TEXT_CHARACTERS, TOKEN_IDS)
        part = msgspec.structs.replace(
            token,
            token=text[at : at + characters],
            token_ids=ids[first : first + count],
            logprobs=logprobs[:count] or None,
        )
        lines.append(encode_event(part))
        at, first = at + characters, first + count
    return b"".join(lines)


def encode_calls(call: ToolCall) -> bytes:
    """Return a tool call event as lines: one, or several if its arguments exceed the limits of one line."""
    lines: list[bytes] = []
    while len(call.arguments) > _TEXT_CHARACTERS:
        part, rest = call.arguments[:_TEXT_CHARACTERS], call.arguments[_TEXT_CHARACTERS:]
        lines.append(encode_event(msgspec.structs.replace(call, arguments=part, complete=None)))
        call = ToolCall(id=call.id, choice=call.choice, index=call.index, arguments=rest, complete=call.complete)
    return b"".join([*lines, encode_event(call)])


def encode_embedding(id: str, index: int, vector: "array[float]", *, numbers: bool) -> bytes:
    """Return an embedding as event lines: one, or several if the vector exceeds the limits of one line.

    Args:
        id: The request's id.
        index: The index of the input.
        vector: Values of type float32 (type code "f").
        numbers: Write the values as JSON numbers, not as base64.
    """
    lines: list[bytes] = []
    for offset in range(0, len(vector), EMBEDDING_VALUES):
        part = vector[offset : offset + EMBEDDING_VALUES]
        values = part.tolist() if numbers else base64.b64encode(_little_endian(part)).decode()
        lines.append(encode_event(Embedding(id=id, index=index, offset=offset, dims=len(vector), embedding=values)))
    return b"".join(lines)


def encode_prompt_logprobs(id: str, logprobs: Sequence[Logprob]) -> bytes:
    """Return the log-probabilities of a prompt's tokens as event lines.

    Args:
        id: The request's id.
        logprobs: The log-probabilities, at least one.
    """
    lines: list[bytes] = []
    while logprobs:
        _, count = _split_to_fit(logprobs)
        lines.append(encode_event(Token(id=id, token="", token_ids=[], prompt_logprobs=[*logprobs[:count]])))
        logprobs = logprobs[count:]
    return b"".join(lines)


def _little_endian(values: "array[float]") -> bytes:
    if sys.byteorder == "big":
        values = array("f", values)
        values.byteswap()
    return values.tobytes()


def _split_to_fit(logprobs: Sequence[Logprob]) -> tuple[int, int]:
    """Return the number of characters and of log-probabilities that fit into one event."""
    size = 0
    for count, logprob in enumerate(logprobs):
        size += len(escape_separators(_encode(logprob))) + 1
        if size > _LOGPROBS_BYTES:
            return (_TEXT_CHARACTERS, count) if count else (0, 1)
    return _TEXT_CHARACTERS, len(logprobs)


def error_event(error: RequestError, *, id: str | None = None, bad_id: str | None = None) -> Error:
    """Return the event for an error, with its texts cut to the limits.

    Args:
        error: The error.
        id: The request that it ends, if any.
        bad_id: The id in flight that the refused line named, if any.
    """
    return Error(
        id=id,
        error=truncate_text(error.message),
        code=error.code,
        retryable=error.retryable,
        field=error.field and error.field[:_FIELD_CHARACTERS],
        bad_id=bad_id,
    )


def truncate_text(text: str, limit: int = ERROR_BYTES) -> str:
    """Return `text` as valid Unicode, cut so that its JSON form takes at most `limit` bytes."""
    text = text[:limit].encode("utf-8", "replace").decode()
    while len(escape_separators(_encode(text))) > limit:
        text = text[: len(text) * 3 // 4] + "…"
    return text
