"""The contract between text generation and the package that reads images and sounds.

Generation imports no media library, and only the types of `lmwire_worker.multimodal` that need none. A loader of a
multimodal model passes objects with these methods.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ..engine.interface import Report
from ..engine.preparation import Media
from ..media import MediaPolicy
from ..models.shared_weights import SharedWeights
from ..models.tokenizer import Tokenizer
from ..multimodal.feature_cache import FeatureCache
from ..multimodal.placeholders import MediaLayout
from ..prompts.media_expander import MediaExpander
from .solo_prefill import SoloPrefill


class MediaBackend(MediaExpander, Protocol):
    """Media for one multimodal model: reads it, expands placeholders in prompts, and prefills prompts with media."""

    @property
    def feature_cache(self) -> FeatureCache:
        """The cached media input."""
        ...

    @property
    def capabilities(self) -> list[str]:
        """The names of the model's media capabilities."""
        ...

    def prefetch_media(self, request: Any, ready: Callable[[], None]) -> Media | None:
        """Start to read a request's media; return None if it has none. `ready` is called from another thread."""
        ...

    def prefill(
        self, layout: MediaLayout, tokens: list[int], cache: list[Any] | None, cached_tokens: int
    ) -> SoloPrefill:
        """Return the prefill of a prompt's beginning.

        Args:
            layout: The prompt's media.
            tokens: The beginning of the prompt, with all of its media.
            cache: The KV cache of the first `cached_tokens` tokens, which the prefill takes over; None for none.
            cached_tokens: Number of tokens in the cache.
        """
        ...

    def compute_cache(self, layout: MediaLayout, tokens: list[int]) -> list[Any]:
        """Return a new KV cache with a prompt's beginning, computed at once."""
        ...

    def set_rope_delta(self, layout: MediaLayout, tokens: list[int], cache: list[Any]) -> None:
        """Correct the positions that follow a prompt's media in a KV cache from the prefix cache."""
        ...

    def close(self) -> None:
        """Stop all reading."""
        ...


class MediaLoader(Protocol):
    """Loads the media part of a multimodal model."""

    supports_batching: bool
    """True if rows may be computed together; known after `open`."""

    def open_base(self, folder: Path, *, trust_remote_code: bool) -> SharedWeights:
        """Return the model, whose weights are not read yet.

        Args:
            folder: The model folder.
            trust_remote_code: Whether the folder's Python files may run.

        Raises:
            RequestError: bad_model, unsupported.
        """
        ...

    def open_processor(self, network: Any, tokenizer: Tokenizer) -> None:
        """Load the processor of images and sounds. The weights need not be read yet.

        Args:
            network: The model.
            tokenizer: Receives the processor's chat template, if it has none.

        Raises:
            RequestError: bad_model, unsupported.
        """
        ...

    def open(self, network: Any, policy: MediaPolicy, report: Report) -> MediaBackend:
        """Return the media part, once it has passed a trial.

        Args:
            network: The model, with its weights in memory.
            policy: The images and sounds that requests may refer to.
            report: Receives the progress.

        Raises:
            RequestError: unsupported, if the model computes no kind of media correctly.
            LoadCancelled: from `report`.
        """
        ...
