"""Prefix-aware routing: the replica whose prefix cache holds the start of a prompt, unless that replica is too busy."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

import msgspec

_MAX_PREFIXES: Final = 16_384
"""Number of prompt prefixes to remember. They take a few megabytes."""
_LOAD_FACTOR: Final = 1.25
"""Most requests of a replica, as a multiple of the mean.

See consistent hashing with bounded loads: https://arxiv.org/abs/1608.01350
"""
_LOAD_SLACK: Final = 4
"""Requests that a replica may always have more than the least busy one: a larger batch costs little."""
_FIRST_CUT_BYTES: Final = 1024
"""Length of the first hashed piece of a long part, in bytes.

Each next cut is at twice the length, so that texts with different ends still share prefixes.
"""


class PrefixAffinity:
    """Map from prompt prefixes to the replicas that have processed them, least recently used first.

    A prompt is a chain of hashes. Each hash covers all parts before it, so equal hashes mean equal prefixes.
    """

    def __init__(self) -> None:
        self._replicas_of: OrderedDict[int, set[int]] = OrderedDict()
        self._choice_count = 0
        self._last_chosen: dict[int, int] = {}
        """Number of the choice that last selected each replica."""

    def choose(self, prompt: Sequence[object], load: Sequence[int], candidates: Sequence[int]) -> int:
        """Choose the replica for a prompt and remember that choice.

        The least busy replica with the longest cached prefix wins, unless it has far more requests than the others.

        Args:
            prompt: The prompt's parts, in order.
            load: Number of requests of each replica.
            candidates: Numbers of the replicas that can be chosen.

        Returns:
            The replica's number.
        """
        links = list(prefix_hashes(prompt))
        limit = ceil(_LOAD_FACTOR * (sum(load[number] for number in candidates) + 1) / len(candidates))
        # Among equally busy replicas, take the one that was chosen longest ago, to spread new prompts.
        least_loaded = min(candidates, key=lambda number: (load[number], self._last_chosen.get(number, 0)))
        cached_on = next(
            (seen for link in reversed(links) if (seen := self._replicas_of.get(link, set()).intersection(candidates))),
            None,
        )
        chosen = min(cached_on, key=lambda number: load[number]) if cached_on else least_loaded
        if load[chosen] >= max(limit, load[least_loaded] + _LOAD_SLACK):
            chosen = least_loaded
        self._remember(links, chosen)
        self._choice_count += 1
        self._last_chosen[chosen] = self._choice_count
        return chosen

    def forget(self, replica: int) -> None:
        """Forget the prefixes of a replica that lost its cache."""
        for seen in self._replicas_of.values():
            seen.discard(replica)

    def _remember(self, links: Sequence[int], replica: int) -> None:
        for link in reversed(links):  # short prefixes last: prompts share them, so they are forgotten last
            self._replicas_of.setdefault(link, set()).add(replica)
            self._replicas_of.move_to_end(link)
        while len(self._replicas_of) > _MAX_PREFIXES:
            self._replicas_of.popitem(last=False)


def prefix_hashes(prompt: Sequence[object]) -> Iterator[int]:
    """Yield the hashes of a prompt's prefixes, from the shortest to the whole prompt."""
    link = 0
    for part in prompt:
        data = memoryview(part.encode() if isinstance(part, str) else _encoder.encode(part))
        start, cut = 0, _FIRST_CUT_BYTES
        while start < len(data):
            link = hash((link, bytes(data[start:cut])))
            yield link
            start, cut = cut, 2 * cut


_encoder = msgspec.msgpack.Encoder(enc_hook=repr)
