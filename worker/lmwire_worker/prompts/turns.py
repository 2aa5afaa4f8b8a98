"""Turns: a request's messages in a form that does not depend on the chat template, with text that stands for media."""

import json
import os
from collections.abc import Container, Sequence
from importlib.util import find_spec
from itertools import groupby
from typing import Any, Final

from msgspec import Struct

from lmwire_protocol import AudioPart, CalledTool, Message, RequestError, TextPart
from lmwire_protocol.extras import not_installed

from ..media import MediaKind

ROLES: Final = ("system", "user", "assistant", "tool")
"""The roles that every conversation may have. A bridge session may send others."""


class ToolCall(Struct, frozen=True):
    """A tool call of an assistant's turn."""

    id: str
    name: str
    arguments: dict[str, Any]


class Turn(Struct, frozen=True):
    """One message."""

    role: str
    text: str
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    """Id of the call that a tool's turn answers."""
    name: str = ""
    """Name of the function of a tool's turn, or of the speaker; empty if unknown."""


def read_turns(
    messages: Sequence[Message], *, strict_media: bool, supported_kinds: Container[MediaKind] = ()
) -> list[Turn]:
    """Return messages as turns, with a marker for each image or sound that the model takes.

    The results of one turn's calls are in the order of the calls: many templates write no ids.

    Args:
        messages: The request's messages.
        strict_media: Refuse media that the model does not take. Otherwise a note in the text counts it.
        supported_kinds: The kinds of media that the model takes.

    Raises:
        RequestError: invalid_request, unsupported: the error names the path of the part or of the arguments.
    """
    turns: list[Turn] = []
    names: dict[str, str] = {}
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        calls = tuple(_read_call(call, f"{path}.tool_calls[{at}]") for at, call in enumerate(message.tool_calls))
        names |= {call.id: call.name for call in calls}
        call_id = message.tool_call_id or ""
        turns.append(
            Turn(
                role="system" if message.role == "developer" else message.role,
                text=message_text(message, path, strict=strict_media, supported_kinds=supported_kinds),
                reasoning=message.reasoning or "",
                calls=calls,
                call_id=call_id,
                name=message.name or names.get(call_id, ""),
            )
        )
    return _in_order_of_calls(turns)


def _in_order_of_calls(turns: list[Turn]) -> list[Turn]:
    """Return the turns with neighbouring results sorted by their calls. Unknown calls come last.

    Results with images or sounds stay where they are: the media of a request are in the order of its messages.
    """
    places: dict[str, int] = {}
    ordered: list[Turn] = []
    for is_result, group in groupby(turns, key=lambda turn: turn.role == "tool"):
        neighbours = list(group)
        if is_result and not any(marker in turn.text for turn in neighbours for marker in MEDIA_MARKERS.values()):
            neighbours.sort(key=lambda turn: places.get(turn.call_id, len(places)))
        elif not is_result:
            places = {call.id: place for place, call in enumerate(neighbours[-1].calls)}
        ordered += neighbours
    return ordered


def _read_call(call: CalledTool, path: str) -> ToolCall:
    arguments = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")  # a call without arguments often comes as no text at all
        except (ValueError, RecursionError) as error:
            raise _arguments_error(path, f"is not JSON: {error}") from None
        if not isinstance(arguments, dict):
            raise _arguments_error(path, "is JSON, but no object")
    return ToolCall(call.id, call.name, arguments)


def _arguments_error(path: str, problem: str) -> RequestError:
    field = f"{path}.arguments"
    return RequestError("invalid_request", f"{field}: {problem}; give an object, or its text", field=field)


# The text that stands for images and sounds in a message.

MEDIA_MARKERS: Final[dict[MediaKind, str]] = {
    "image": f"qvImage{os.urandom(16).hex()}",
    "sound": f"qvSound{os.urandom(16).hex()}",
}
"""Text that stands for media until the template is rendered. It is random, so that no message contains it."""


def message_text(message: Message, path: str, *, strict: bool, supported_kinds: Container[MediaKind] = ()) -> str:
    """Return a message's text, with markers for media that the model takes and a note that counts other media.

    Args:
        message: The message, with or without content.
        path: The message's path in the request, such as `messages[2]`.
        strict: Refuse media that the model does not take.
        supported_kinds: The kinds of media that the model takes.

    Raises:
        RequestError: unsupported: the message has media that the model does not take, and `strict` is true.
    """
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    texts: list[str] = []
    untaken: list[MediaKind] = []
    for index, part in enumerate(message.content):
        if isinstance(part, TextPart):
            texts.append(part.text)
            continue
        kind: MediaKind = "sound" if isinstance(part, AudioPart) else "image"
        if kind in supported_kinds:
            texts.append(MEDIA_MARKERS[kind])
            continue
        if strict:
            field = f"{path}.content[{index}]"
            problem = (
                f"{field}: this model takes no {kind}s; send text, or set strict_media to false{_install_hint(kind)}"
            )
            raise RequestError("unsupported", problem, field=field)
        untaken.append(kind)
    text = "".join(texts)
    note = _attachment_note(untaken)
    return f"{text}\n{note}" if text and note else text or note


def _install_hint(kind: MediaKind) -> str:
    if find_spec("mlx_vlm"):
        return ""
    purpose = f"runs models that {'hear' if kind == 'sound' else 'see'}"
    return f"; {not_installed('mlx-vlm', 'vision', purpose=purpose)}"


def _attachment_note(kinds: list[MediaKind]) -> str:
    """Return a note such as "[2 images and 1 sound were attached]"; empty without media."""
    counts = [f"{count} {kind}{'s' * (count > 1)}" for kind in MEDIA_MARKERS if (count := kinds.count(kind))]
    return f"[{' and '.join(counts)} {'was' if len(kinds) == 1 else 'were'} attached]" if counts else ""
