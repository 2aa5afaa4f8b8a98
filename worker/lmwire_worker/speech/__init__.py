"""Transcripts of recordings, with mlx-audio.

Importing this costs nothing: what knows a model library is imported when such a model is loaded. `listener` is what the
lane asks of a model, `whisper` and `parakeet` are those that there are, and `lane` serves requests with one.
"""

from typing import TYPE_CHECKING

from .recognize import is_speech_model

if TYPE_CHECKING:
    from .loading import open_speech

__all__ = ["is_speech_model", "open_speech"]


def __getattr__(name: str) -> object:
    if name == "open_speech":
        from .loading import open_speech

        return open_speech
    raise AttributeError(name)
