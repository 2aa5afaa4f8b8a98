"""The mock's prefix cache: it counts the words that a prompt shares with earlier ones."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

import msgspec

from lmwire_protocol import Chat, Generate
from lmwire_protocol.events import CacheStats

_BUDGET_BYTES: Final = 1 << 20
_PROMPTS: Final = 256
"""Each request is compared with all of them."""


class PromptCache:
    """Prompts, the most recently used last. A prompt takes the bytes of its text."""

    def __init__(self) -> None:
        self._prompts: dict[tuple[str, ...], bool] = {}
        """For each prompt, whether it is pinned."""
        self._stats = CacheStats(0, _BUDGET_BYTES, 0, 0, 0, 0, 0, 0)

    def begin(self, request: Generate | Chat, prompt: Sequence[str]) -> int:
        """Return the number of cached words of a request's prompt, and cache the prompt.

        Args:
            request: The request.
            prompt: Its words.
        """
        if request.cache == "off":
            return 0
        known, longest = max(((_common(prompt, kept), kept) for kept in self._prompts), default=(0, ()))
        known = min(known, len(prompt) - 1)  # the last word is always computed
        if known:
            self._prompts[longest] = self._prompts.pop(longest)
            self._stats.hits += 1
            self._stats.saved_tokens += known
        else:
            self._stats.misses += 1
        self._keep(tuple(prompt), pinned=request.cache == "pin")
        return known

    def stats(self) -> CacheStats:
        """Return the statistics. Any thread may call it."""
        return msgspec.structs.replace(self._stats)

    def clear(self) -> int:
        """Empty the cache, and return the bytes freed."""
        freed = self._stats.bytes
        self._prompts.clear()
        self._stats.bytes = self._stats.entries = 0
        return freed

    def _keep(self, prompt: tuple[str, ...], *, pinned: bool) -> None:
        if prompt in self._prompts:
            pinned |= self._prompts.pop(prompt)
        else:
            self._stats.bytes += _size(prompt)
        self._prompts[prompt] = pinned
        while self._stats.bytes > _BUDGET_BYTES or len(self._prompts) > _PROMPTS:
            old = next((old for old, is_pinned in self._prompts.items() if not is_pinned), prompt)
            del self._prompts[old]
            self._stats.bytes -= _size(old)
            self._stats.evictions += 1
        self._stats.entries = len(self._prompts)


def _common(prompt: Sequence[str], kept: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(prompt, kept, strict=False)))


def _size(prompt: Sequence[str]) -> int:
    return sum(len(word.encode()) for word in prompt)
