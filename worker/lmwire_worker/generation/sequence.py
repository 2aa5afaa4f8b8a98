"""One choice of a request: its tokens, and how far they are computed."""

from enum import Enum

from lmwire_protocol.commands import Generation
from lmwire_protocol.events import FinishReason

from ..engine.interface import RunnerEvent
from ..multimodal.media_input import MediaInput
from ..multimodal.placeholders import MediaLayout
from .output_processor import OutputProcessor
from .prefix_cache import CacheHit
from .sampling.logprobs import LogprobHandle
from .structured_output.constraint import Constraint


class Status(Enum):
    """Place of a sequence on its way. A row of the batch is prefilled or decoded; it restarts after a failed step."""

    WAITING = "waiting"
    """It waits for a part of its prompt: from the disk, or from the prefill of another sequence."""
    PREFILLING = "prefilling"
    DECODING = "decoding"
    RESTARTING = "restarting"
    """It is outside of the batch, and will be computed again from its tokens."""
    ENDED = "ended"
    """The answer is complete, or has failed."""


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
    ) -> None:
        self.key = key
        self.request = request
        self.seed = seed
        self.prompt = prompt
        self.media = media
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
        self._initial_constraint = constraint
        self._output = output
        self._events: list[RunnerEvent] = []

    @property
    def remaining_tokens(self) -> int:
        """Maximum number of tokens still to generate, without an eos token."""
        return self._output.remaining_tokens

    @property
    def is_prefill_only(self) -> bool:
        """True if the choice ends with its prompt."""
        return self._output.remaining_tokens == 0

    @property
    def tokens(self) -> list[int]:
        """The tokens of the prompt and of the answer so far."""
        return self.prompt + self.generated

    @property
    def length(self) -> int:
        """Number of tokens of the prompt and of the answer so far."""
        return len(self.prompt) + len(self.generated)

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
        self.prefix_tokens = 0
        if self._initial_constraint is not None:
            self.constraint = self._initial_constraint.fork(self.generated)

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

    def take_events(self) -> list[RunnerEvent]:
        """Return the events since the last call."""
        events, self._events = self._events, []
        return events

    def finish(self, finish_reason: FinishReason | None) -> list[RunnerEvent]:
        """End the choice, and return its last events with all text that was held back."""
        self.status = Status.ENDED
        try:
            return self._output.finish(finish_reason)
        except BaseException as error:  # other rows continue
            if finish_reason is None:
                return []
            problem = f"the end of the answer cannot be turned into text: {type(error).__name__}: {error}"
            return self._output.fail("engine_error", problem)
