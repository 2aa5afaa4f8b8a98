"""The images and sounds that requests refer to: fetched, checked and decoded in threads, before a lane works on them.

Imports no model library. What reads media is imported when it is first used, and Pillow, miniaudio and the network's
modules when there is something to read: every worker starts with this package, and most never read any.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .media_refs import Item, Kind, items_of
from .policy import Policy

if TYPE_CHECKING:
    from .images import Image
    from .reader import Gathered, Reader, Recalled
    from .sounds import Sound

__all__ = ["Gathered", "Image", "Item", "Kind", "Policy", "Reader", "Recalled", "Sound", "items_of"]

_HOMES = {"Gathered": "reader", "Image": "images", "Reader": "reader", "Recalled": "reader", "Sound": "sounds"}


def __getattr__(name: str) -> Any:
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
