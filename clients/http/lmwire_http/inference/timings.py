"""The times of a prompt and of its answer, as llama.cpp's server reports them."""

from msgspec import Struct

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
    """Return the times of a result, as llama.cpp's server reports them."""
    usage, times = result.usage, result.timings
    prompt_n, predicted_n = usage.prompt_tokens - usage.cached_tokens, usage.completion_tokens
    prompt_ms = times.prefill_ms or 0.0
    predicted_ms = 0.0 if times.first_token_ms is None else max(0.0, times.total_ms - times.first_token_ms)
    return Timings(
        cache_n=usage.cached_tokens,
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
