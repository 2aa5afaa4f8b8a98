"""The memory that a load of a model needs, as far as the server knows it before it starts a worker."""

from typing import Final

from lmwire import RequestFailed
from lmwire_protocol import events

from .model_spec import ModelSpec

_ANSWER_TOKENS: Final = 1024
"""Tokens of a short answer, for which a worker requires memory besides the weights."""
_ELEMENT_BYTES: Final = 2
_REFUSAL_TTL_S: Final = 10.0
"""Time for which a refused load is not tried again, in seconds. Other programs may free memory meanwhile."""


class LoadNeed:
    """The memory that each worker of a model needs for a load.

    The listing of models estimates it. A model that is not listed is known after its first load. A refusal of a worker
    corrects both.
    """

    def __init__(self) -> None:
        self._described = 0
        self._refused = 0
        self._refusal: tuple[RequestFailed, float] | None = None

    def bytes(self, spec: ModelSpec) -> int:
        """Return the memory for one worker, in bytes; 0 if it is unknown."""
        return max(spec.load_bytes or spec.size_bytes or self._described, self._refused)

    def record_loaded(self, model: events.ModelDone) -> None:
        """Learn from a worker's description of the model."""
        answer = _ELEMENT_BYTES * 2 * model.layers * model.hidden_size * _ANSWER_TOKENS
        self._described = model.weights_bytes + answer
        self._refusal = None

    def record_refusal(self, available: int) -> None:
        """Learn that a worker refused to load the model.

        Args:
            available: The memory that the worker had, in bytes.
        """
        self._refused = max(self._refused, available + 1)

    def record_final_refusal(self, error: RequestFailed, now: float) -> None:
        """Remember that a worker refused the load although it had all memory.

        Args:
            error: The worker's error.
            now: A monotonic time in seconds.
        """
        self._refusal = (error, now)

    def check(self, now: float) -> None:
        """Raise the worker's last error again if a new worker would have to fail, too.

        Args:
            now: A monotonic time in seconds.

        Raises:
            RequestFailed: A worker has refused the load a moment ago.
        """
        if self._refusal and now - self._refusal[1] < _REFUSAL_TTL_S:
            raise self._refusal[0].with_traceback(None)
