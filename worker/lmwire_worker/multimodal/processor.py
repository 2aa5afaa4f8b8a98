"""Read the media of requests, build their inputs, and find them in prompts."""

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import mlx.core as mx

from lmwire_protocol import Chat, RequestError, Tokenize

from ..media import CachedMedia, Image, MediaKind, MediaPolicy, MediaReader, MediaRef, Sound, find_media_refs
from ..media.media_error import MediaError
from .input_builder import MediaInputBuilder
from .media_input import MediaInput
from .network import MultimodalNetwork
from .placeholders import MediaLayout, expand_placeholders, find_layout
from .prefill import MultimodalPrefill, rope_positions

RECOMPUTE_CHUNK_TOKENS: Final = 2048
"""Tokens of a prompt that a recovery computes in one chunk. Bounds its memory."""


class MultimodalProcessor:
    """The images and sounds of one model's requests.

    Args:
        network: The model.
        inputs: Builds media inputs for it.
        policy: The files and URLs that may be read.
    """

    def __init__(self, network: MultimodalNetwork, inputs: MediaInputBuilder, policy: MediaPolicy) -> None:
        self._network = network
        self._inputs = inputs
        self._reader = MediaReader(policy, inputs.find_cached)
        self._uncached_reader = MediaReader(policy)
        """Reads for requests with `cache: "off"`."""
        self.feature_cache = inputs.feature_cache

    @property
    def capabilities(self) -> list[str]:
        """Capabilities that a load reports: `images`, `sounds`."""
        return [f"{kind}s" for kind in self._inputs.modalities]

    @property
    def placeholders(self) -> dict[MediaKind, str]:
        """The text that a chat template writes for each kind of media that the model takes."""
        return {kind: modality.placeholder for kind, modality in self._inputs.modalities.items()}

    def prefetch_media(self, request: Any, ready: Callable[[], None]) -> "PendingInputs | None":
        """Start to read a request's media. Media of a kind that the model does not take are left to the template.

        Args:
            request: The request.
            ready: Called from another thread once all inputs are built, or one has failed.

        Returns:
            None if there is nothing to read.
        """
        refs = find_media_refs(request) if _may_have_media(request) else []
        refs = [ref for ref in refs if ref.kind in self._inputs.modalities]
        if not refs:
            return None
        if isinstance(request, Chat) and request.cache == "off":
            return PendingInputs(self._uncached_reader, partial(self._inputs.build, use_cache=False), refs, ready)
        return PendingInputs(self._reader, self._inputs.build, refs, ready)

    def expand_placeholders(self, text: str, media_inputs: Sequence[MediaInput]) -> str:
        """Replace the placeholders in a rendered conversation; see `placeholders.expand_placeholders`.

        Args:
            text: The rendered conversation.
            media_inputs: The media inputs, in order.
        """
        return expand_placeholders(text, media_inputs, self._inputs.modalities.values())

    def find_layout(self, tokens: list[int], media_inputs: Sequence[MediaInput]) -> MediaLayout | None:
        """Find media inputs in a prompt; see `placeholders.find_layout`.

        Args:
            tokens: The prompt's tokens.
            media_inputs: The media inputs, in order.
        """
        return find_layout(tokens, media_inputs)

    def prefill(
        self, layout: MediaLayout, tokens: list[int], cache: list[Any] | None, cached_tokens: int
    ) -> MultimodalPrefill:
        """Return the prefill of a prompt's beginning with all of its media inputs.

        Args:
            layout: The media inputs.
            tokens: The beginning.
            cache: Caches of the beginning, which the caller owns; None for new ones.
            cached_tokens: Number of tokens that the caches hold.
        """
        return MultimodalPrefill(self._network, layout, tokens, cache or self._network.make_cache(), cached_tokens)

    def compute_cache(self, layout: MediaLayout, tokens: list[int]) -> list[Any]:
        """Compute the caches of a prompt's beginning at once.

        Args:
            layout: The media inputs.
            tokens: The beginning, with all media inputs.
        """
        work = self.prefill(layout, tokens, None, 0)
        while work.done < work.end:
            work.advance(RECOMPUTE_CHUNK_TOKENS)
        return work.cache

    def set_rope_delta(self, layout: MediaLayout, tokens: list[int], cache: list[Any]) -> None:
        """Set the positions' offset in caches that hold all of a prompt's media inputs.

        Args:
            layout: The media inputs.
            tokens: The prompt.
            cache: The row's caches.
        """
        if self._network.has_rope_delta:
            cache[-1] = rope_positions(self._network, layout, mx.array([tokens[: layout.end]]))[1]

    def close(self) -> None:
        """Stop the readers' threads. No request may be running."""
        self._reader.close()
        self._uncached_reader.close()


class PendingInputs:
    """Media inputs that are being built; see `engine.preparation.Media`.

    The thread that reads the last medium builds them all.

    Args:
        reader: Reads images and sounds.
        build: Builds the input of one.
        refs: The media to read; at least one.
        ready: Called from another thread once all are built, or something has failed.
    """

    def __init__(
        self,
        reader: MediaReader,
        build: Callable[[Image | Sound], MediaInput],
        refs: Sequence[MediaRef],
        ready: Callable[[], None],
    ) -> None:
        self.done = False
        self._build = build
        self._refs = refs
        self._ready = ready
        self._inputs: list[MediaInput] = []
        self._error: RequestError | None = None
        me: weakref.ref[PendingInputs] = weakref.ref(self)
        with (assigned := threading.Lock()):
            self._media = reader.read(refs, lambda: _build_inputs(me, assigned))

    def results(self) -> list[MediaInput]:
        """Return the media inputs, in the order of the references. Only when `done`.

        Raises:
            RequestError: A medium cannot be read, or this model cannot use it.
        """
        if self._error is not None:
            raise self._error
        return self._inputs

    def build(self) -> None:
        """Build all inputs. Called once all media are read."""
        try:
            for ref, medium in zip(self._refs, self._media.results(), strict=True):
                self._inputs.append(medium.value if isinstance(medium, CachedMedia) else self._build_one(ref, medium))
        except RequestError as error:
            self._error = error
        self.done = True
        self._ready()

    def _build_one(self, ref: MediaRef, medium: Image | Sound) -> MediaInput:
        try:
            return self._build(medium)
        except MediaError as error:
            raise RequestError(error.code, f"{ref.field}: {error}", field=ref.field) from None
        except Exception as error:  # processors raise whatever their arithmetic leads to
            problem = f"{ref.field}: this model's {ref.kind} processor refuses it: {type(error).__name__}: {error}"
            raise RequestError("invalid_request", problem, field=ref.field) from None


def _build_inputs(reference: "weakref.ref[PendingInputs]", assigned: threading.Lock) -> None:
    with assigned:  # media from memory may be read before the reader has returned
        pass
    if (pending := reference()) is not None:  # a cancelled request needs no inputs
        pending.build()


def _may_have_media(request: Any) -> bool:
    return isinstance(request, Chat) or (isinstance(request, Tokenize) and request.messages is not None)
