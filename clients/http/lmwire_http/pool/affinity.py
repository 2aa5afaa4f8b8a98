"""Which replica of a model has the beginning of a prompt cached, and whether it is too busy for that to matter."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

import msgspec

_LINKS: Final = 16_384
"""That are remembered: a few megabytes."""
_BALANCE: Final = 1.25
"""The requests that a replica may have, as a multiple of the mean. Consistent hashing with bounded loads."""
_SLACK: Final = 4
"""Requests that a replica may have more than the least busy one in any case: a batch takes them at little cost."""
_FIRST_CUT: Final = 1024
"""Bytes: a long part is cut here, and at each double of it, so that texts that end differently have a beginning."""


class Affinity:
    """Remembers which replicas have seen which beginnings, the last ones first.

    A prompt is a chain of hashes, each over all that comes before it, so equal links are equal beginnings.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[int, set[int]] = OrderedDict()
        self._choices = 0
        self._chosen: dict[int, int] = {}
        """When each replica was chosen last, in choices."""

    def choose(self, prompt: Sequence[object], busy: Sequence[int], up: Sequence[int]) -> int:
        """The replica for a prompt: the least busy that has most of it cached, unless it is much busier than others.

        Args:
            prompt: In parts.
            busy: How many requests each replica has.
            up: Those that can be chosen, by number.
        """
        links = list(chain(prompt))
        limit = ceil(_BALANCE * (sum(busy[number] for number in up) + 1) / len(up))
        # Of several that nothing is on, the one that was left alone for longest: all have room for what is new.
        least = min(up, key=lambda number: (busy[number], self._chosen.get(number, 0)))
        known = next((seen for link in reversed(links) if (seen := self._seen.get(link, set()).intersection(up))), None)
        chosen = min(known, key=lambda number: busy[number]) if known else least
        if busy[chosen] >= max(limit, busy[least] + _SLACK):
            chosen = least
        self._remember(links, chosen)
        self._choices += 1
        self._chosen[chosen] = self._choices
        return chosen

    def forget(self, replica: int) -> None:
        """A replica has lost what it had cached."""
        for seen in self._seen.values():
            seen.discard(replica)

    def _remember(self, links: Sequence[int], replica: int) -> None:
        for link in reversed(links):  # the beginnings, which others share, are the last to be forgotten
            self._seen.setdefault(link, set()).add(replica)
            self._seen.move_to_end(link)
        while len(self._seen) > _LINKS:
            self._seen.popitem(last=False)


def chain(prompt: Sequence[object]) -> Iterator[int]:
    """The hashes of a prompt's beginnings, from the shortest to the whole."""
    link = 0
    for part in prompt:
        data = memoryview(part.encode() if isinstance(part, str) else _encoder.encode(part))
        start, cut = 0, _FIRST_CUT
        while start < len(data):
            link = hash((link, bytes(data[start:cut])))
            yield link
            start, cut = cut, 2 * cut


_encoder = msgspec.msgpack.Encoder(enc_hook=repr)
