"""Commands and events to lines. Every event line stays under `LINE_OUT_BYTES`, whatever it carries."""

import base64
import math
import sys
from array import array
from collections.abc import Sequence
from typing import Any

import msgspec

from .commands import Command
from .errors import RequestError
from .events import Embedding, Error, Event, Logprob, Token, ToolCall
from .framing import escape_separators
from .limits import EMBEDDING_VALUES, ERROR_BYTES, TOKEN_IDS

_encode = msgspec.json.Encoder().encode

# A character takes at most 6 bytes in JSON, a token id and its comma at most 8: text and ids of one event stay
# under 24 and 32 KiB, and the line under 60. Where there are log-probabilities ids are few, and the line's room goes
# to those; one entry by itself always fits, with no text beside it.
_TEXT_CHARACTERS = 4000
_LOGPROBS_BYTES = 24 * 1024
_FIELD_CHARACTERS = 256


def encode_command(id: str, command: Command) -> bytes:
    """One command as a line, `id` first, fields that have their default left out.

    Raises:
        ValueError: a number is not finite, which JSON cannot carry.
    """
    fields = _encode(command)
    if b"null" in fields:  # what the encoder makes of such a number, and a worker of an absent field
        _check_finite(msgspec.to_builtins(command), "")
    head = b'{"id":' + _encode(id) + b',"cmd":' + _encode(command.name)
    return head + (b"}\n" if fields == b"{}" else b"," + fields[1:] + b"\n")


def _check_finite(value: Any, path: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path}: {value} is no finite number")
    if isinstance(value, dict):
        for name, member in value.items():
            _check_finite(member, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check_finite(item, f"{path}[{index}]")


def encode_event(event: Event) -> bytes:
    """One event as a line. Tokens go through `encode_tokens`, which keeps them to the limits."""
    return escape_separators(_encode(event)) + b"\n"


def encode_tokens(token: Token) -> bytes:
    """A token event as lines: one, or as many as the limits make of it."""
    text, ids = token.token, token.token_ids
    if token.logprobs is None and len(text) <= _TEXT_CHARACTERS and len(ids) <= TOKEN_IDS:
        return encode_event(token)
    lines: list[bytes] = []
    at = first = 0
    while at < len(text) or first < len(ids) or not lines:
        logprobs = (token.logprobs or [])[first : first + TOKEN_IDS]
        characters, count = _fit(logprobs) if logprobs else (_TEXT_CHARACTERS, TOKEN_IDS)
        piece = msgspec.structs.replace(
            token,
            token=text[at : at + characters],
            token_ids=ids[first : first + count],
            logprobs=logprobs[:count] or None,
        )
        lines.append(encode_event(piece))
        at, first = at + characters, first + count
    return b"".join(lines)


def encode_calls(call: ToolCall) -> bytes:
    """Tool call events as lines: one, or as many as the limits make of its arguments."""
    lines: list[bytes] = []
    while len(call.arguments) > _TEXT_CHARACTERS:
        piece, rest = call.arguments[:_TEXT_CHARACTERS], call.arguments[_TEXT_CHARACTERS:]
        lines.append(encode_event(msgspec.structs.replace(call, arguments=piece, complete=None)))
        call = ToolCall(id=call.id, choice=call.choice, index=call.index, arguments=rest, complete=call.complete)
    return b"".join([*lines, encode_event(call)])


def encode_embedding(id: str, index: int, vector: "array[float]", *, numbers: bool) -> bytes:
    """Embedding events as lines: one, or as many as the limits make of the vector, which holds float32 ("f")."""
    lines: list[bytes] = []
    for offset in range(0, len(vector), EMBEDDING_VALUES):
        piece = vector[offset : offset + EMBEDDING_VALUES]
        values = piece.tolist() if numbers else base64.b64encode(_little_endian(piece)).decode()
        lines.append(encode_event(Embedding(id=id, index=index, offset=offset, dims=len(vector), embedding=values)))
    return b"".join(lines)


def _little_endian(values: "array[float]") -> bytes:
    if sys.byteorder == "big":
        values = array("f", values)
        values.byteswap()
    return values.tobytes()


def _fit(logprobs: Sequence[Logprob]) -> tuple[int, int]:
    """How much text, and how many of the log-probabilities, one event takes."""
    size = 0
    for count, logprob in enumerate(logprobs):
        size += len(escape_separators(_encode(logprob))) + 1
        if size > _LOGPROBS_BYTES:
            return (_TEXT_CHARACTERS, count) if count else (0, 1)
    return _TEXT_CHARACTERS, len(logprobs)


def error_event(error: RequestError, *, id: str | None = None, bad_id: str | None = None) -> Error:
    """The event that tells a host of `error`, cut to the limits."""
    return Error(
        id=id,
        error=clip(error.message),
        code=error.code,
        retryable=error.retryable,
        field=error.field and error.field[:_FIELD_CHARACTERS],
        bad_id=bad_id,
    )


def clip(text: str, limit: int = ERROR_BYTES) -> str:
    """`text`, cut so that its JSON form takes at most `limit` bytes; valid Unicode in any case."""
    text = text[:limit].encode("utf-8", "replace").decode()
    while len(escape_separators(_encode(text))) > limit:
        text = text[: len(text) * 3 // 4] + "…"
    return text
