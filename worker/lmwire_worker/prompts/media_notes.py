"""The text that stands for images and sounds in a message."""

import os
from collections.abc import Container
from importlib.util import find_spec
from typing import Final

from lmwire_protocol import AudioPart, Message, RequestError, TextPart
from lmwire_protocol.extras import not_installed

from ..media import MediaKind

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
