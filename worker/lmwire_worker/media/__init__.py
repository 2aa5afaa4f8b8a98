"""The images and sounds that requests refer to: fetched and checked, and decoded in processes of their own.

The package imports no model library. Readers are imported at their first use; Pillow and the network's modules at the
first medium. Every worker starts with this package, and most never read any media.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .media_refs import MediaKind, MediaRef, find_media_refs
from .policy import MediaPolicy

if TYPE_CHECKING:
    from .images import Image
    from .pending import CachedMedia, PendingMedia
    from .reader import MediaReader
    from .sounds import Sound

__all__ = [
    "CachedMedia",
    "Image",
    "MediaKind",
    "MediaPolicy",
    "MediaReader",
    "MediaRef",
    "PendingMedia",
    "Sound",
    "find_media_refs",
]

_HOMES = {
    "CachedMedia": "pending", "Image": "images", "MediaReader": "reader", "PendingMedia": "pending", "Sound": "sounds",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
