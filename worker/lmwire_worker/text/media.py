"""What stands in a message's text for the images and sounds in it."""

import secrets
from importlib.util import find_spec
from typing import Final

from lmwire_protocol import AudioPart, ImagePart, Message, RequestError, TextPart

IMAGE: Final = f"qvImage{secrets.token_hex(16)}"
"""An image that the model is shown, on its way to the template. No text of a host's can hold it."""


def message_text(message: Message, path: str, *, strict: bool, sees: bool = False) -> str:
    """A message's texts as they are, and a line that counts what else was attached.

    Args:
        message: With content or without.
        path: Where it stands in its request, as `messages[2]`.
        strict: Refuse instead what the model cannot take.
        sees: It takes images: they become marks.

    Raises:
        RequestError: unsupported.
    """
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    texts: list[str] = []
    images = sounds = 0
    for index, part in enumerate(message.content):
        if isinstance(part, TextPart):
            texts.append(part.text)
            continue
        if sees and isinstance(part, ImagePart):
            texts.append(IMAGE)
            continue
        sound = isinstance(part, AudioPart)
        if strict:
            field = f"{path}.content[{index}]"
            problem = f"{field}: this model takes no {'sounds' if sound else 'images'}; send text, or leave out"
            raise RequestError("unsupported", f"{problem} strict_media{_extra(sound=sound)}", field=field)
        images, sounds = images + (not sound), sounds + sound
    text = "".join(texts)
    note = _note(images, sounds)
    return f"{text}\n{note}" if text and note else text or note


def _extra(*, sound: bool) -> str:
    if sound or find_spec("mlx_vlm"):
        return ""
    return "; models that see are shown images with `pip install 'lmwire[vision]'`"


def _note(images: int, sounds: int) -> str:
    """As "[2 images and 1 sound were attached]"; empty when there is nothing to tell."""
    counts = [f"{count} {noun}{'s' * (count > 1)}" for count, noun in ((images, "image"), (sounds, "sound")) if count]
    if not counts:
        return ""
    return f"[{' and '.join(counts)} {'was' if images + sounds == 1 else 'were'} attached]"
