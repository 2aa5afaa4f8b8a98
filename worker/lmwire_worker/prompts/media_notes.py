"""What stands in a message's text for the images and sounds in it."""

import secrets
from collections.abc import Container
from importlib.util import find_spec
from typing import Final

from lmwire_protocol import AudioPart, Message, RequestError, TextPart

from ..media import Kind

MARKS: Final[dict[Kind, str]] = {
    "image": f"qvImage{secrets.token_hex(16)}",
    "sound": f"qvSound{secrets.token_hex(16)}",
}
"""What the model takes, on its way to the template. No text of a host's can hold it."""


def message_text(message: Message, path: str, *, strict: bool, takes: Container[Kind] = ()) -> str:
    """A message's texts as they are, and a line that counts what else was attached.

    Args:
        message: With content or without.
        path: Where it stands in its request, as `messages[2]`.
        strict: Refuse instead what the model cannot take.
        takes: What it takes: that becomes marks.

    Raises:
        RequestError: unsupported.
    """
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    texts: list[str] = []
    untaken: list[Kind] = []
    for index, part in enumerate(message.content):
        if isinstance(part, TextPart):
            texts.append(part.text)
            continue
        kind: Kind = "sound" if isinstance(part, AudioPart) else "image"
        if kind in takes:
            texts.append(MARKS[kind])
            continue
        if strict:
            field = f"{path}.content[{index}]"
            problem = f"{field}: this model takes no {kind}s; send text, or set strict_media to false{_extra(kind)}"
            raise RequestError("unsupported", problem, field=field)
        untaken.append(kind)
    text = "".join(texts)
    note = _note(untaken)
    return f"{text}\n{note}" if text and note else text or note


def _extra(kind: Kind) -> str:
    if find_spec("mlx_vlm"):
        return ""
    verb = "hear are given sounds" if kind == "sound" else "see are shown images"
    return f"; models that {verb} with `pip install 'lmwire[vision]'`"


def _note(kinds: list[Kind]) -> str:
    """As "[2 images and 1 sound were attached]"; empty when there is nothing to tell."""
    counts = [f"{count} {kind}{'s' * (count > 1)}" for kind in MARKS if (count := kinds.count(kind))]
    return f"[{' and '.join(counts)} {'was' if len(kinds) == 1 else 'were'} attached]" if counts else ""
