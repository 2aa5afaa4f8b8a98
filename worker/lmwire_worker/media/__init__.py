"""The images and sounds that requests refer to: fetched, checked and decoded in threads, before a lane works on them.

Imports no model library, and Pillow, miniaudio and the network's modules only when there is something to read.
"""

from .images import Image
from .items import Item, items_of
from .policy import Policy
from .reader import Gathered, Reader
from .sounds import Sound

__all__ = ["Gathered", "Image", "Item", "Policy", "Reader", "Sound", "items_of"]
