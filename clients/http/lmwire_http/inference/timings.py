"""The times of a prompt and of its answer, as llama.cpp's server reports them."""

from collections.abc import Callable
from time import monotonic

from msgspec import Struct

from lmwire import TokenDelta, ToolCallDelta
from lmwire_protocol import events


class Timings(Struct, kw_only=True):
    """Tokens and times of the prompt and of the answer."""

    cache_n: int
    """Prompt tokens from the cache."""
    prompt_n: int
    """Prompt tokens that were computed."""
    prompt_ms: float
    prompt_per_token_ms: float
    prompt_per_second: float
    predicted_n: int
    """Tokens of the answer."""
    predicted_ms: float
    predicted_per_token_ms: float
    predicted_per_second: float


def make_timings(result: events.ResultDone) -> Timings:
    """Return the times of a result."""
    usage, times = result.usage, result.timings
    predicted_ms = 0.0 if times.first_token_ms is None else max(0.0, times.total_ms - times.first_token_ms)
    return _timings(
        cache_n=usage.cached_tokens,
        prompt_n=usage.prompt_tokens - usage.cached_tokens,
        prompt_ms=times.prefill_ms or 0.0,
        predicted_n=usage.completion_tokens,
        predicted_ms=predicted_ms,
    )


class TimingsSoFar:
    """The times of a request while it runs. The worker reports its times at the end, so these are the server's.

    Args:
        clock: Returns the time, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._prompts: set[int] = set()
        self._at: float | None = None
        """Time of the last event."""
        self._is_answered = False
        """True once the prompt has an answer. Before, the time until the next token is the prompt's."""
        self._cached = self._computed = self._predicted = 0
        self._prompt_ms = self._predicted_ms = 0.0

    def note_prompt(self, prompt: int, done: int, total: int) -> None:
        """Take in the progress of a prompt. The first one has the tokens that were cached.

        Args:
            prompt: The number of the prompt in the request.
            done: Number of its tokens that are done.
            total: Number of its tokens.
        """
        if prompt in self._prompts:
            return
        self._prompts.add(prompt)
        self._cached += done
        self._computed += total - done
        self._at = self._clock()
        self._is_answered = False

    def note_delta(self, delta: TokenDelta | ToolCallDelta) -> None:
        """Take in the tokens of a delta."""
        now = self._clock()
        passed_ms = 0.0 if self._at is None else (now - self._at) * 1000
        self._at = now
        if self._is_answered:
            self._predicted_ms += passed_ms
        else:
            self._prompt_ms += passed_ms
        self._is_answered = True
        if isinstance(delta, TokenDelta):
            self._predicted += len(delta.token_ids)

    def timings(self) -> Timings:
        """Return the times so far."""
        return _timings(
            cache_n=self._cached,
            prompt_n=self._computed,
            prompt_ms=round(self._prompt_ms, 3),
            predicted_n=self._predicted,
            predicted_ms=round(self._predicted_ms, 3),
        )


def _timings(*, cache_n: int, prompt_n: int, prompt_ms: float, predicted_n: int, predicted_ms: float) -> Timings:
    return Timings(
        cache_n=cache_n,
        prompt_n=prompt_n,
        prompt_ms=prompt_ms,
        prompt_per_token_ms=_ratio(prompt_ms, prompt_n),
        prompt_per_second=_ratio(prompt_n * 1000, prompt_ms),
        predicted_n=predicted_n,
        predicted_ms=predicted_ms,
        predicted_per_token_ms=_ratio(predicted_ms, predicted_n),
        predicted_per_second=_ratio(predicted_n * 1000, predicted_ms),
    )


def _ratio(amount: float, by: float) -> float:
    return round(amount / by, 3) if by else 0.0
