"""The contract between prompts and the package that reads images and sounds.

Prompts know no media library. The runner of a multimodal model passes an object with these methods.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..media import MediaKind


class MediaExpander(Protocol):
    """The media of one multimodal model, as its prompts need it."""

    @property
    def placeholders(self) -> Mapping[MediaKind, str]:
        """The text that stands for one media input in a rendered conversation, for each kind that the model takes."""
        ...

    def expand_placeholders(self, text: str, media_inputs: Sequence[Any], /) -> str:
        """Return a rendered conversation with each placeholder replaced by the text of its media input.

        Args:
            text: The rendered conversation.
            media_inputs: The request's media, in order.

        Raises:
            RequestError: invalid_request: the numbers of placeholders and of media inputs differ.
        """
        ...

    def find_layout(self, tokens: list[int], media_inputs: Sequence[Any], /) -> Any:
        """Return the places of the media inputs among a prompt's tokens, or None without media."""
        ...
