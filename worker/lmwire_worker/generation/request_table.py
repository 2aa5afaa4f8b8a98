"""The table of the requests that a runner has accepted: `Sequence.status` says where each choice of them is."""

from collections.abc import Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING

from msgspec import Struct

from ..engine.interface import AdmittedRequest
from ..multimodal.media_input import MediaInput
from .sequence import Sequence, Status
from .solo_prefill import SoloPrefill

if TYPE_CHECKING:
    from .prefix_cache.disk_tier import DiskRead


class ActiveRequest(Struct, eq=False):
    """A request that has not ended."""

    admitted: AdmittedRequest
    sequences: list[Sequence]
    """Its choices that have not ended."""
    read: "Future[DiskRead | None] | None" = None
    """The part of its prompt that is being read from disk; None if the disk has none."""
    solo: SoloPrefill | None = None
    """The work that comes before its prompt joins the batch; None without any."""

    @property
    def first(self) -> Sequence:
        """The first choice, which computes the prompt for all."""
        return self.sequences[0]

    @property
    def waiting(self) -> list[Sequence]:
        """The choices that are not in the batch, and that no failure has stopped."""
        return [sequence for sequence in self.sequences if sequence.status is Status.WAITING]


class RequestTable:
    """The requests by key, oldest first. It knows neither the batch nor the caches."""

    def __init__(self) -> None:
        self._requests: dict[int, ActiveRequest] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def __contains__(self, key: int) -> bool:
        return key in self._requests

    def __getitem__(self, key: int) -> ActiveRequest:
        return self._requests[key]

    def add(self, key: int, request: ActiveRequest) -> None:
        """Enter a request, whose sequences wait."""
        self._requests[key] = request

    def remove(self, key: int) -> list[Sequence]:
        """Remove a request in whatever state, and return its sequences, which have ended now. Absent ones have none."""
        request = self._requests.pop(key, None)
        sequences = request.sequences if request else []
        for sequence in sequences:
            sequence.status = Status.ENDED
        return sequences

    def end(self, sequence: Sequence) -> None:
        """Remove a choice that has ended, and its request with the last one."""
        sequences = self._requests[sequence.key].sequences
        sequences.remove(sequence)
        if not sequences:
            del self._requests[sequence.key]

    # Where the requests are.

    @property
    def waiting(self) -> list[ActiveRequest]:
        """The requests of which nothing is started."""
        return [request for request in self._requests.values() if request.first.status is Status.WAITING]

    @property
    def solo(self) -> list[ActiveRequest]:
        """The requests whose prompts are computed by themselves, one after another."""
        return [request for request in self._requests.values() if request.solo]

    @property
    def in_batch(self) -> list[Sequence]:
        """The sequences that have a row in the batch. Some may have ended in a step whose output is not delivered."""
        return [
            sequence
            for request in self._requests.values()
            if not request.solo
            for sequence in request.sequences
            if sequence.status not in (Status.WAITING, Status.RESTARTING)
        ]

    @property
    def stopped(self) -> Sequence | None:
        """The next sequence that must start again after a failed step; None without any."""
        return next((sequence for sequence in self._sequences if sequence.status is Status.RESTARTING), None)

    # What they need.

    @property
    def lengths(self) -> list[int]:
        """Tokens of each sequence, with those that are not computed yet."""
        return [sequence.length for sequence in self._sequences]

    @property
    def media_inputs(self) -> set[MediaInput]:
        """The images and sounds of the requests."""
        return {media_input for request in self._requests.values() for media_input in request.first.media_inputs}

    @property
    def longest(self) -> int:
        """Key of the request with the longest sequence. Others are padded to it, so its end frees the most."""
        return max(self._sequences, key=lambda sequence: sequence.length).key

    @property
    def max_computed_tokens(self) -> int:
        """Progress of the most advanced prompt in the batch that is incomplete, in tokens."""
        prompts = (row for row in self.in_batch if row.computed_tokens < len(row.prompt))
        return max((row.computed_tokens for row in prompts), default=0)

    @property
    def _sequences(self) -> Iterator[Sequence]:
        return (sequence for request in self._requests.values() for sequence in request.sequences)
