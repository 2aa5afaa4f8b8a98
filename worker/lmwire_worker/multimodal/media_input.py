"""An image or a sound in the form that one model takes."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Any, Final

from msgspec import Struct


class Features(Struct, frozen=True):
    """The encoder's output for one media input, in the order of its tokens."""

    embeds: Any
    """Embeddings, [1, tokens, width]."""
    deepstack: list[Any]
    """Features that are added after each of the first layers, [image tokens, width] each. Empty for most models."""

    @property
    def nbytes(self) -> int:
        """Size of all arrays, in bytes."""
        return self.embeds.nbytes + sum(layer.nbytes for layer in self.deepstack)


class MediaInput:
    """An image or a sound as one model takes it.

    Args:
        digest: SHA-256 of the file.
        text: The text that represents it in a prompt.
        tokens: Tokens of that text, from the first placeholder token to the last.
        inputs: The processor's output, for the encoder.
        token_bytes: Bytes of features for each token; 0 if they are unknown.
    """

    def __init__(
        self, digest: bytes, text: str, tokens: list[int], inputs: dict[str, Any], token_bytes: int = 0
    ) -> None:
        self.digest = digest
        self.text = text
        self.tokens = tokens
        self.grid: Any = inputs.get("image_grid_thw")
        """Patches in time, down and across, int [1, 3]; None for models without such a grid."""
        self.inputs: dict[str, Any] | None = inputs
        """The encoder's inputs; None once it is encoded."""
        self.features: Features | None = None
        """The encoder's output; None until it is encoded."""
        self.nbytes: int = max(sum(getattr(value, "nbytes", 0) for value in inputs.values()), token_bytes * len(tokens))
        """Bytes that it takes now or once it is encoded, whichever is more. So it never grows."""
        self.last_used = 0.0
        """Monotonic time at which a request last used it; the feature cache sets it."""

    @property
    def placeholder_token(self) -> int:
        """The token that stands for a part of it."""
        return self.tokens[0]

    def set_features(self, features: Features) -> None:
        """Replace the encoder's inputs by its output."""
        self.features, self.inputs = features, None
        self.nbytes = features.nbytes


# Media inputs that are cached for later requests, within a budget.

DEFAULT_BUDGET_BYTES: Final = 256 * 2**20


class FeatureCache:
    """The most recently used media inputs. All methods may be called from any thread.

    Its members for eviction are those of `generation.prefix_cache`, so that both caches share one policy.
    """

    def __init__(self) -> None:
        self.budget: int = DEFAULT_BUDGET_BYTES
        """Bytes that the cached inputs may take."""
        self.evictions = 0
        """Number of evicted inputs."""
        self._in_use: Callable[[], Collection[MediaInput]] = lambda: ()
        self.cached: OrderedDict[bytes, MediaInput] = OrderedDict()
        """The inputs by the digests of their files, the least recently used first."""
        self._lock = threading.Lock()

    def limit_budget(self, bytes: int) -> int:
        """Lower the budget to at most this many bytes, and return the budget."""
        self.budget = min(self.budget, bytes)
        return self.budget

    def track_use(self, in_use: Callable[[], Collection[MediaInput]]) -> None:
        """Set the function that lists the inputs of running requests: these take memory whether cached or not."""
        self._in_use = in_use

    def find(self, digest: bytes) -> MediaInput | None:
        """Return the cached input of a file, or None. This counts as a use."""
        with self._lock:
            if (found := self.cached.get(digest)) is not None:
                self._touch(found)
            return found

    def add(self, media_input: MediaInput) -> None:
        """Cache an input as the most recently used one, and evict others beyond the budget."""
        with self._lock:
            self.cached[media_input.digest] = media_input
            self._touch(media_input)
            while self._cached_bytes() > self.budget:
                self.cached.popitem(last=False)
                self.evictions += 1

    @property
    def bytes(self) -> int:
        """Bytes that the cached inputs and those of running requests take."""
        in_use = {*self._in_use()}
        with self._lock:
            return sum(media_input.nbytes for media_input in in_use.union(self.cached.values()))

    @property
    def stale_since(self) -> float | None:
        """Monotonic time of the last use of the next input to evict; None if none can be evicted."""
        in_use = self._in_use()
        with self._lock:
            return next((cached.last_used for cached in self.cached.values() if cached not in in_use), None)

    def evict(self, bytes: int) -> int:
        """Evict inputs that no request uses, up to this many bytes or slightly more. Return the bytes freed."""
        in_use = self._in_use()
        freed = 0
        with self._lock:
            for cached in [*self.cached.values()]:
                if freed < bytes and cached not in in_use:
                    del self.cached[cached.digest]
                    freed += cached.nbytes
                    self.evictions += 1
        return freed

    def clear(self) -> int:
        """Drop all inputs, and return the bytes freed."""
        in_use = self._in_use()
        with self._lock:
            freed = sum(cached.nbytes for cached in self.cached.values() if cached not in in_use)
            self.cached.clear()
        return freed

    def count(self) -> tuple[int, int]:
        """Return the number of cached inputs, and their bytes."""
        with self._lock:
            return len(self.cached), self._cached_bytes()

    def _cached_bytes(self) -> int:
        return sum(cached.nbytes for cached in self.cached.values())

    def _touch(self, media_input: MediaInput) -> None:
        media_input.last_used = time.monotonic()
        self.cached.move_to_end(media_input.digest)
