"""What a lane sees and hears: read and made into pictures beside its steps, and found in its prompts."""

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mlx.core as mx

from lmwire_protocol import Chat, RequestError, Tokenize

from ..generation.batching.caches import MAX_CHUNK_TOKENS
from ..media import Image, Item, Kind, Policy, Reader, Recalled, Sound, items_of
from ..media.media_error import Problem
from .media_input import Picture, Pictures
from .network import SeeingNetwork
from .placeholders import ImageLayout, expand, find_layout
from .prefill import ImagePrefill, positions


class Sight:
    """The images of one model's requests, and the sounds where it hears.

    Args:
        network: The model.
        pictures: Made of them for it.
        policy: What may be read.
    """

    def __init__(self, network: SeeingNetwork, pictures: Pictures, policy: Policy) -> None:
        self._network = network
        self._pictures = pictures
        self._reader = Reader(policy, pictures.recall)
        self._forgetful = Reader(policy)
        """Reads for requests that are to begin with nothing that is kept."""
        self.shelf = pictures.shelf
        """What is kept of them."""

    @property
    def capabilities(self) -> list[str]:
        """What the model takes, as a load reports it."""
        return [f"{kind}s" for kind in self._pictures.senses]

    @property
    def placeholders(self) -> dict[Kind, str]:
        """What a chat template writes for one of what the model takes."""
        return {kind: sense.placeholder for kind, sense in self._pictures.senses.items()}

    def gather(self, request: Any, ready: Callable[[], None]) -> "Looking | None":
        """See `lmwire_worker.engine.interface.ModelRunner`. What the model does not take it is told of in words."""
        items = [item for item in items_of(request) if item.kind in self._pictures.senses] if _may_show(request) else []
        if not items:
            return None
        if isinstance(request, Chat) and request.cache == "off":
            return Looking(self._forgetful, partial(self._pictures.of, keep=False), items, ready)
        return Looking(self._reader, self._pictures.of, items, ready)

    def expand_placeholders(self, text: str, pictures: Sequence[Picture]) -> str:
        """See `layout.expand`."""
        return expand(text, pictures, self._pictures.senses.values())

    def find_layout(self, tokens: list[int], pictures: Sequence[Picture]) -> ImageLayout | None:
        """See `layout.find_layout`."""
        return find_layout(tokens, pictures)

    def prefill(self, layout: ImageLayout, tokens: list[int], cache: list[Any] | None, held: int) -> ImagePrefill:
        """The work that a prompt's beginning is, which has all of its pictures.

        Args:
            layout: The pictures.
            tokens: The beginning.
            cache: What is known of it, as the caller's own; nothing when None.
            held: How many of its tokens the cache holds.
        """
        return ImagePrefill(self._network, layout, tokens, cache or self._network.make_cache(), held)

    def refill(self, layout: ImageLayout, tokens: list[int]) -> list[Any]:
        """A cache with a prompt's beginning, computed from nothing at once."""
        work = self.prefill(layout, tokens, None, 0)
        while work.done < work.end:
            work.advance(MAX_CHUNK_TOKENS)
        return work.cache

    def settle(self, layout: ImageLayout, tokens: list[int], cache: list[Any]) -> None:
        """Tells a cache that holds a prompt's pictures how far the positions are behind."""
        if self._network.counts_positions:
            cache[-1] = positions(self._network, layout, mx.array([tokens[: layout.end]]))[1]

    def close(self) -> None:
        """No request is held."""
        self._reader.close()
        self._forgetful.close()


class Looking:
    """See `engine.interface.Preparation`: all is read, and made into pictures by the thread that read the last.

    Args:
        reader: Reads images and sounds.
        make: Makes a picture of one.
        items: Where they are; at least one.
        ready: Called from another thread when all is done, or something has failed.
    """

    def __init__(
        self,
        reader: Reader,
        make: Callable[[Image | Sound], Picture],
        items: Sequence[Item],
        ready: Callable[[], None],
    ) -> None:
        self.done = False
        self._make = make
        self._items = items
        self._ready = ready
        self._seen: list[Picture] = []
        self._error: RequestError | None = None
        me: weakref.ref[Looking] = weakref.ref(self)
        with (assigned := threading.Lock()):
            self._gathered = reader.read(items, lambda: _look(me, assigned))

    def results(self) -> list[Picture]:
        """The pictures, in the order of the items. Only when `done`.

        Raises:
            RequestError: one cannot be read, or not be used by this model.
        """
        if self._error is not None:
            raise self._error
        return self._seen

    def look(self) -> None:
        """Called when all is read."""
        try:
            media = self._gathered.results()
            for item, medium in zip(self._items, media, strict=True):
                self._seen.append(medium.value if isinstance(medium, Recalled) else self._look_at(item, medium))
        except RequestError as error:
            self._error = error
        self.done = True
        self._ready()

    def _look_at(self, item: Item, medium: Image | Sound) -> Picture:
        try:
            return self._make(medium)
        except Problem as problem:
            raise RequestError(problem.code, f"{item.field}: {problem}", field=item.field) from None
        except Exception as error:  # processors raise whatever their arithmetic leads to
            problem = f"{item.field}: this model's {item.kind} processor refuses it: {type(error).__name__}: {error}"
            raise RequestError("invalid_request", problem, field=item.field) from None


def _look(looking: weakref.ref[Looking], assigned: threading.Lock) -> None:
    with assigned:  # what comes from memory may be there before the reader has returned
        pass
    if (me := looking()) is not None:  # nobody waits for it otherwise
        me.look()


def _may_show(request: Any) -> bool:
    return isinstance(request, Chat) or (isinstance(request, Tokenize) and request.messages is not None)
