"""Errors of media that cannot be read."""

from typing import Final

from .media_refs import MediaKind

_TYPES: Final[dict[MediaKind, tuple[str, ...]]] = {
    "image": ("image/",),
    "sound": ("audio/", "application/ogg", "video/ogg", "video/mp4"),
}
_UNKNOWN: Final = "application/octet-stream"


class MediaError(Exception):
    """An image or a sound cannot be read.

    The sentence follows the field's path, as in "messages[0].content[1].media.data: is empty".

    Args:
        sentence: The problem, and its remedy.
        code: The protocol's error code.
        retryable: Whether the same request may succeed later.
    """

    def __init__(self, sentence: str, code: str = "invalid_request", *, retryable: bool = False) -> None:
        super().__init__(sentence)
        self.code = code
        self.retryable = retryable


def check_size(count: int, limit: int) -> None:
    """Check a file's size.

    Args:
        count: Its bytes.
        limit: Maximum number of bytes.

    Raises:
        MediaError: It is too large.
    """
    if count > limit:
        raise MediaError(f"has more than the {limit:,} bytes that are taken; make it smaller")


def check_type(media_type: str, kind: MediaKind) -> None:
    """Check the media type that a sender declares.

    The type must be of the right kind. The content decides the format: senders often name the wrong one.

    Args:
        media_type: The declared type; empty for none.
        kind: The kind of media that is expected.

    Raises:
        MediaError: The type is of another kind.
    """
    if media_type and media_type != _UNKNOWN and not media_type.startswith(_TYPES[kind]):
        raise MediaError(f"is {media_type[:64]!r} by its own account; a file of a type {_TYPES[kind][0]}… is needed")
