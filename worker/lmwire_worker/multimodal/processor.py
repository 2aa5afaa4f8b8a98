"""Read the media of requests, build their inputs, and find them in prompts."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import mlx.core as mx

from lmwire_protocol import Chat, Tokenize

from ..media import MediaKind, MediaPolicy, MediaReader, find_media_refs
from .input_builder import MediaInputBuilder
from .media_input import MediaInput
from .network import MultimodalNetwork
from .pending_inputs import InputThread, PendingInputs
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
        self.inputs = inputs
        self._reader = MediaReader(policy)
        self._builder = InputThread()
        self.feature_cache = inputs.feature_cache

    @property
    def capabilities(self) -> list[str]:
        """Capabilities that a load reports: `images`, `sounds`."""
        return [f"{kind}s" for kind in self.inputs.modalities]

    @property
    def placeholders(self) -> dict[MediaKind, str]:
        """The text that a chat template writes for each kind of media that the model takes."""
        return {kind: modality.placeholder for kind, modality in self.inputs.modalities.items()}

    def prefetch_media(self, request: Any, ready: Callable[[], None]) -> "PendingInputs | None":
        """Start to read a request's media. Media of a kind that the model does not take are left to the template.

        Args:
            request: The request.
            ready: Called from another thread once all inputs are built, or one has failed.

        Returns:
            None if there is nothing to read.
        """
        refs = find_media_refs(request) if _may_have_media(request) else []
        refs = [ref for ref in refs if ref.kind in self.inputs.modalities]
        if not refs:
            return None
        use_cache = not (isinstance(request, Chat) and request.cache == "off")
        read = partial(self._reader.read, refs, recall=self.inputs.find_cached if use_cache else _find_nothing)
        return PendingInputs(read, self._builder, partial(self.inputs.build, use_cache=use_cache), refs, ready)

    def expand_placeholders(self, text: str, media_inputs: Sequence[MediaInput]) -> str:
        """Replace the placeholders in a rendered conversation; see `placeholders.expand_placeholders`.

        Args:
            text: The rendered conversation.
            media_inputs: The media inputs, in order.
        """
        return expand_placeholders(text, media_inputs, self.inputs.modalities.values())

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
        """Stop the threads. No request may be running."""
        self._reader.close()
        self._builder.close()


def _may_have_media(request: Any) -> bool:
    return isinstance(request, Chat) or (isinstance(request, Tokenize) and request.messages is not None)


def _find_nothing(digest: bytes, kind: MediaKind) -> None:
    """Return no cached input: the request shall leave no trace, and depend on none."""
