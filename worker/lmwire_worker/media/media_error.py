"""Why an image or a sound cannot be had."""

from typing import Final

from .media_refs import Kind

_TYPES: Final[dict[Kind, tuple[str, ...]]] = {
    "image": ("image/",),
    "sound": ("audio/", "application/ogg", "video/ogg"),
}
_UNKNOWN: Final = "application/octet-stream"


class Problem(Exception):
    """Worded to go behind the field's path: "messages[0].content[1].media.data: is empty".

    Args:
        sentence: What is wrong, and what to do.
        code: The protocol's error code.
        retryable: Whether the same request may succeed later.
    """

    def __init__(self, sentence: str, code: str = "invalid_request", *, retryable: bool = False) -> None:
        super().__init__(sentence)
        self.code = code
        self.retryable = retryable


def check_size(count: int, limit: int) -> None:
    """Raises Problem when a file has more bytes than are taken."""
    if count > limit:
        raise Problem(f"has more than the {limit:,} bytes that are taken; make it smaller")


def check_type(media_type: str, kind: Kind) -> None:
    """Raises Problem when whoever sends a file says that it is another kind of thing.

    Which format of the right kind it is, its bytes say: senders are often wrong there.
    """
    if media_type and media_type != _UNKNOWN and not media_type.startswith(_TYPES[kind]):
        raise Problem(f"is {media_type[:64]!r} by its own account; a file of a type {_TYPES[kind][0]}… is needed")
