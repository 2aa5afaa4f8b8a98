"""The interface of a model that speaks, and the checks that such models share."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lmwire_protocol import RequestError, Speak

MAX_LISTED = 64
"""Names in the error for a name that a model does not have."""


@dataclass(frozen=True)
class SpeechPart:
    """The result of one step."""

    samples: np.ndarray
    """Float32 from -1 to 1, one channel."""
    is_cut: bool = False
    """True if the model's own limit has cut the text after this part."""


class Synthesizer(Protocol):
    """A model that speaks, with its weights in memory."""

    module: Any
    """The network."""
    sample_rate: int

    def check(self, request: Speak) -> None:
        """Check that the model supports the request.

        Raises:
            RequestError: invalid_request, unsupported.
        """
        ...

    def speak(self, request: Speak) -> Iterator[SpeechPart]:
        """Speak a text, a few seconds in each step.

        Only one text is spoken at a time: models keep state of their own.

        Args:
            request: The request, which passed `check`.

        Yields:
            Parts of the speech, in order.
        """
        ...


def refuse_fields(request: Speak, unused: Collection[str]) -> None:
    """Refuse fields that a model does not use.

    Args:
        request: The request.
        unused: The fields.

    Raises:
        RequestError: unsupported.
    """
    for field in ("voice", "language", "instructions"):
        if field in unused and getattr(request, field):
            raise RequestError("unsupported", f"{field}: this model does not use it; leave it out", field=field)
    if "speed" in unused and request.speed != 1:
        raise RequestError("unsupported", "speed: this model has one speed; leave it out", field="speed")


def check_name(field: str, name: str | None, known: Sequence[str]) -> None:
    """Check that a model has a voice or a language.

    Args:
        field: The field.
        name: Its value; None if it is absent.
        known: The names that the model has, in lower case.

    Raises:
        RequestError: invalid_request.
    """
    if name is not None and name.lower() not in known:
        listed = ", ".join(known[:MAX_LISTED]) + (" …" if len(known) > MAX_LISTED else "")
        raise RequestError("invalid_request", f"{field}: this model has {listed}; give one of them", field=field)
