"""Pictures that are kept for requests to come, within a budget."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .media_input import Picture

KEPT_BYTES: Final = 256 * 2**20


class Shelf:
    """The media inputs that were used last; see `generation.cache_manager`. May be read from any thread."""

    def __init__(self) -> None:
        self.budget: int = KEPT_BYTES
        """Bytes that it may take."""
        self.in_use: Callable[[], Collection[Picture]] = lambda: ()
        """The pictures that requests hold: they take their memory whether they are kept or not."""
        self.evictions = 0
        """Pictures that were given up for others, or for requests."""
        self._kept: OrderedDict[bytes, Picture] = OrderedDict()
        """By the digests of their images, the least recently used first."""
        self._lock = threading.Lock()

    def share_memory(self, max_bytes: int, in_use: Callable[[], Collection["Picture"]]) -> None:
        """Stay below a size, and never evict what requests use.

        Args:
            max_bytes: Maximum size in bytes; a smaller budget stays.
            in_use: Returns the media input that requests use.
        """
        self.budget = min(self.budget, max_bytes)
        self.in_use = in_use

    def find(self, digest: bytes) -> "Picture | None":
        """The picture of an image, if it is kept. To ask for it is to use it."""
        with self._lock:
            if (picture := self._kept.get(digest)) is not None:
                self._touch(picture)
            return picture

    def put(self, picture: "Picture") -> None:
        """Keeps a picture, as the one that was used last."""
        with self._lock:
            self._kept[picture.digest] = picture
            self._touch(picture)
            while self._kept_bytes() > self.budget:
                self._kept.popitem(last=False)
                self.evictions += 1

    @property
    def bytes(self) -> int:
        """What the pictures take that are kept, and those that requests hold."""
        held = {*self.in_use()}
        with self._lock:
            return sum(picture.nbytes for picture in held.union(self._kept.values()))

    @property
    def stale_since(self) -> float | None:
        """When what would be given up next was last used; None when there is nothing to give up."""
        held = self.in_use()
        with self._lock:
            return next((picture.used for picture in self._kept.values() if picture not in held), None)

    def evict(self, bytes: int) -> int:
        """Gives up at least so many bytes, as far as no request holds them, and returns how many."""
        held = self.in_use()
        freed = 0
        with self._lock:
            for picture in [*self._kept.values()]:
                if freed < bytes and picture not in held:
                    del self._kept[picture.digest]
                    freed += picture.nbytes
                    self.evictions += 1
        return freed

    def clear(self) -> int:
        """Keeps none of them any longer, and returns how many bytes that freed."""
        held = self.in_use()
        with self._lock:
            freed = sum(picture.nbytes for picture in self._kept.values() if picture not in held)
            self._kept.clear()
        return freed

    def count(self) -> tuple[int, int]:
        """How many are kept, and their bytes."""
        with self._lock:
            return len(self._kept), self._kept_bytes()

    def _kept_bytes(self) -> int:
        return sum(picture.nbytes for picture in self._kept.values())

    def _touch(self, picture: "Picture") -> None:
        picture.used = time.monotonic()
        self._kept.move_to_end(picture.digest)
