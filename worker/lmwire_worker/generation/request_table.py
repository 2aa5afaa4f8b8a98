"""The table of the requests that a runner has accepted, and their sequences. A sequence's `status` says where it is."""

from collections.abc import Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING

from msgspec import Struct

from lmwire_protocol.commands import Generation
from lmwire_protocol.events import FinishReason

from ..engine.interface import AdmittedRequest, RunnerEvent, Status
from ..multimodal.media_input import MediaInput
from ..multimodal.placeholders import MediaLayout
from .banned_strings import BannedStrings, GeneratedToken
from .output_processor import OutputProcessor
from .prefix_cache import CacheHit
from .sampling.logprobs import LogprobHandle
from .solo_prefill import SoloPrefill
from .structured_output.constraint import Constraint

if TYPE_CHECKING:
    from .prefix_cache.disk_tier import DiskRead
    from .sampling.dry import Repetitions

# One choice of a request: its tokens, and how far they are computed.


class Sequence:
    """The tokens of one choice, which one row of the batch computes.

    Args:
        key: The scheduler's name for the request.
        request: The request's parameters.
        seed: The seed of this choice.
        prompt: The prompt's tokens.
        output: Turns generated tokens into events.
        constraint: The grammar of the answer, at its start; None for free text.
        media: The media input in the prompt; None without any.
        repetitions: What DRY penalizes; None without.
        bans: What the answer must not contain; None if it may contain anything.
    """

    def __init__(
        self,
        key: int,
        request: Generation,
        seed: int,
        prompt: list[int],
        output: OutputProcessor,
        constraint: Constraint | None = None,
        media: MediaLayout | None = None,
        repetitions: "Repetitions | None" = None,
        bans: BannedStrings | None = None,
    ) -> None:
        self.key = key
        self.request = request
        self.seed = seed
        self.prompt = prompt
        self.media = media
        self.repetitions = repetitions
        self.bans = bans
        self.choice = output.choice
        self.generated = output.token_ids
        """The tokens of the answer, without an eos token."""
        self.constraint = constraint and constraint.fork()
        self.status = Status.WAITING
        self.prefix_tokens = 0
        """Prompt tokens that the row's cache held when the row joined the batch."""
        self.computed_tokens = 0
        """Prompt tokens computed so far, cached ones included."""
        self.unverified_hit: CacheHit | None = None
        """A cache hit that is computed again, to compare it."""
        self.is_trusted = True
        """True if the computed caches are correct. A failed step may have spoiled them."""
        self.has_restarted = False
        """True if the row has joined a batch again, after its prompt was reported."""
        self.is_taken_back = False
        """True if the batch has computed tokens that the answer has lost."""
        self._initial_constraint = constraint
        self._output = output
        self._events: list[RunnerEvent] = []

    @property
    def remaining_tokens(self) -> int:
        """Maximum number of tokens still to generate, without an eos token."""
        return self._output.remaining_tokens - len(self._held)

    @property
    def is_prefill_only(self) -> bool:
        """True if the choice ends with its prompt."""
        return self._output.remaining_tokens == 0

    @property
    def tokens(self) -> list[int]:
        """The tokens of the prompt and of the answer so far."""
        return self.prompt + self.generated + self._held

    @property
    def length(self) -> int:
        """Number of tokens of the prompt and of the answer so far."""
        return len(self.prompt) + len(self.generated) + len(self._held)

    @property
    def _held(self) -> list[int]:
        """The newest tokens, which are held back because of banned strings."""
        return self.bans.held_tokens if self.bans is not None else []

    @property
    def media_inputs(self) -> set[MediaInput]:
        """The images and sounds in the prompt."""
        return {place.media_input for place in self.media.ranges} if self.media else set()

    def cache_key(self, tokens: list[int]) -> list[int]:
        """Return tokens as the prefix cache stores them: placeholder tokens depend on the media they stand for."""
        return self.media.cache_keys(tokens) if self.media else tokens

    # Prefill.

    def start_from(self, hit: CacheHit | None) -> None:
        """Start after the tokens of a cache hit. A hit to be verified is computed again."""
        if hit is not None and hit.needs_verification:
            self.unverified_hit = hit
        elif hit is not None:
            self.start_after(hit.length)

    def start_after(self, tokens: int) -> None:
        """Start with a cache that holds the first `tokens` of the prompt."""
        self.prefix_tokens = self.computed_tokens = tokens

    def advance(self, computed_tokens: int) -> None:
        """Record the number of prompt tokens computed so far."""
        self.computed_tokens = computed_tokens

    def take_unverified_hit(self, length: int) -> CacheHit | None:
        """Return the hit to verify if it has `length` tokens; afterwards the sequence has none."""
        hit = self.unverified_hit
        if hit is None or hit.length != length:
            return None
        self.unverified_hit = None
        return hit

    def distrust(self) -> None:
        """Stop storing the sequence's caches, after a failed step."""
        self.is_trusted = False
        self.unverified_hit = None

    def restart(self) -> None:
        """Prepare to join a batch again, with the tokens so far."""
        self.status = Status.WAITING
        self.has_restarted = True
        self.is_taken_back = False
        self.prefix_tokens = 0
        if self.repetitions is not None:
            self.repetitions.forget()
        if self._initial_constraint is not None:
            self.constraint = self._initial_constraint.fork(self.generated + self._held)

    # Decode.

    def append_token(self, token: int, logprob: LogprobHandle | None, *, drafted: bool = False) -> bool:
        """Append a generated token.

        Args:
            token: The token.
            logprob: Its log-probability, if the request asks for it.
            drafted: Whether the draft model proposed it.

        Returns:
            Whether the sequence continues.
        """
        if self.bans is None:
            return self._append(token, logprob, drafted)
        if not self.bans.add(GeneratedToken(token, logprob, drafted)):
            self.is_taken_back = True
            if self.bans.has_failed:
                problem = "banned_strings: the answer cannot go on without one of them; ban fewer"
                self._events += self._output.fail("invalid_request", problem, "banned_strings")
                self.status = Status.ENDED
            return False
        return self._append_released(self._output.remaining_tokens)

    def _append_released(self, room: int) -> bool:
        """Append the held tokens that stay, and return whether the sequence continues; see `BannedStrings.release`."""
        tokens = self.bans.release(room) if self.bans is not None else []
        return all(self._append(held.token, held.logprob, held.drafted) for held in tokens)

    def _append(self, token: int, logprob: LogprobHandle | None, drafted: bool) -> bool:
        output = self._output
        try:
            events = output.add(token, logprob, drafted)
        except BaseException as error:  # other rows continue
            problem = f"token {token} cannot be turned into text: {type(error).__name__}: {error}"
            events = output.fail("engine_error", problem)
        if self.constraint is not None and self.constraint.error is not None and not output.ended:
            field = "tools" if self.request.format is None else "format"  # the grammar is the request's
            events = output.fail("invalid_request", f"{field}: {self.constraint.error}", field)
        self._events += events
        if output.ended:
            self.status = Status.ENDED
        return not output.ended

    def forced_tokens(self, token: int, limit: int) -> list[int]:
        """Return the only tokens that may follow the newest one, which the constraint gets.

        There are none for a request whose log-probabilities are reported, or whose positions depend on its media.

        Args:
            token: The newest token.
            limit: Maximum number of tokens that follow.
        """
        if self.constraint is None or self.request.logprobs or self.media:
            return []
        return self.constraint.forced_tokens(token, limit)

    def take_events(self) -> list[RunnerEvent]:
        """Return the events since the last call."""
        events, self._events = self._events, []
        return events

    def finish(self, finish_reason: FinishReason | None) -> list[RunnerEvent]:
        """End the choice, and return its last events with all text that was held back."""
        if not self._output.ended:
            self._append_released(0)
        self.status = Status.ENDED
        events = self.take_events()
        try:
            return events if self._output.ended else events + self._output.finish(finish_reason)
        except BaseException as error:  # other rows continue
            if finish_reason is None:
                return []
            problem = f"the end of the answer cannot be turned into text: {type(error).__name__}: {error}"
            return self._output.fail("engine_error", problem)


# The requests.


class ActiveRequest(Struct, eq=False):
    """A request that has not ended."""

    admitted: AdmittedRequest
    sequences: list[Sequence]
    """Its choices that have not ended."""
    read: "Future[DiskRead | None] | None" = None
    """The part of its prompt that is being read from disk; None if the disk has none."""
    solo: SoloPrefill | None = None
    """The work that comes before its prompt joins the batch; None without any."""
    shared_tokens: dict[int, int] = {}
    """Number of tokens with which its prompt begins like another one, by the other's key."""

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
