"""Labels of a conversation's images, such as `[Image 2: cat.png]`. An image has the same number in every turn."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from lmwire import MediaDict, MessageDict

_LABEL: Final = re.compile(r"\[Image (\d{1,6}): ([^\[\]\n]+)\]")
_RESERVED: Final = re.compile(r"[^\w.+@()-]+")
"""Characters that could end a label, or be part of a model's placeholder token."""
_MAX_NAME_CHARACTERS: Final = 80
_HASH_CHARACTERS: Final = 8


class ImagePlace(NamedTuple):
    """The place of an image in a conversation."""

    message: int
    """Index of the message."""
    part: int
    """Index of the part in its content."""


def image_places(messages: Sequence[MessageDict]) -> Iterator[ImagePlace]:
    """Yield the places of all images, in order."""
    for index, message in enumerate(messages):
        for at, part in enumerate(_parts(message)):
            if part["type"] == "image":
                yield ImagePlace(index, at)


def label_images(messages: Sequence[MessageDict]) -> dict[ImagePlace, str]:
    """Return the label of each image.

    The same image has the same number. Labels in earlier answers count too, so that a client need not send old images
    again to keep their numbers.
    """
    numbers = _Numbers()
    labels: dict[ImagePlace, str] = {}
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            numbers.add_answer(_text(message))
        for at, part in enumerate(_parts(message)):
            if part["type"] == "image":
                labels[ImagePlace(index, at)] = numbers.label(part["media"])
    return labels


class _Numbers:
    def __init__(self) -> None:
        self._of_image: dict[tuple[str, str], int] = {}
        self._of_name: dict[str, int] = {}
        self._given: set[int] = set()
        """The numbers of images in the conversation."""
        self._last = 0

    def add_answer(self, text: str) -> None:
        """Take the numbers that an earlier answer announced."""
        for number, name in _LABEL.findall(text):
            self._of_name.setdefault(name, int(number))
            self._last = max(self._last, int(number))

    def label(self, media: MediaDict) -> str:
        """Return an image's label. Count on if the image is new."""
        ((kind, source),) = media.items()
        name, key = _name(media), (kind, str(source))
        if key not in self._of_image:
            announced = self._of_name.get(name)
            if announced is None or announced in self._given:  # another file with the same name
                announced = self._last = self._last + 1
            self._of_image[key] = self._of_name[name] = announced
            self._given.add(announced)
        return f"[Image {self._of_image[key]}: {name}]"


def _name(media: MediaDict) -> str:
    """Return the name of an image's file, or one made of a hash if the image came as data."""
    data = media.get("data")
    if data is None:
        path = media.get("path") or unquote(urlsplit(str(media.get("url"))).path)
        return _RESERVED.sub("_", PurePosixPath(str(path)).name)[-_MAX_NAME_CHARACTERS:] or "image"
    head, _, content = str(data).rpartition(",")
    suffix = re.match(r"data:image/(\w+)", head, re.IGNORECASE)
    digest = hashlib.sha256(content.encode(errors="replace")).hexdigest()[:_HASH_CHARACTERS]
    return f"image_{digest}.{suffix[1].lower() if suffix else 'bin'}"


def _parts(message: MessageDict) -> Sequence[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else ()


def _text(message: MessageDict) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in _parts(message))
