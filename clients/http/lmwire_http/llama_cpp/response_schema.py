"""The response to a request to fill a gap. Events of a stream have the same form."""

from collections.abc import Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

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


class Infill(Struct, kw_only=True):
    """The text of a gap, or a part of it."""

    index: Literal[0] = 0
    content: str
    tokens: list[int]
    """The tokens of `content` in a stream; empty in a whole response."""
    stop: bool
    """True for a whole response and for the last event of a stream. The fields below are present then."""
    model: str | UnsetType = UNSET
    tokens_predicted: int | UnsetType = UNSET
    tokens_evaluated: int | UnsetType = UNSET
    """Tokens of the prompt."""
    tokens_cached: int | UnsetType = UNSET
    """Tokens of the prompt that came from the cache."""
    has_new_line: bool | UnsetType = UNSET
    stop_type: Literal["eos", "limit", "word"] | UnsetType = UNSET
    stopping_word: str | UnsetType = UNSET
    timings: Timings | UnsetType = UNSET


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


def select_fields(infill: Infill, paths: Sequence[str] | None) -> Any:
    """Return a response with these fields alone, each under its whole path, as llama.cpp's server does.

    Args:
        infill: The response.
        paths: The fields, such as `timings/prompt_n`. Absent or empty: all.
    """
    if not paths:
        return infill
    whole: Any = msgspec.to_builtins(infill)
    found = {path: _nested(whole, path.split("/")) for path in paths}
    return {path: value for path, value in found.items() if value is not UNSET}


def _nested(value: Any, names: Sequence[str]) -> Any:
    for name in names:
        members = cast(dict[str, Any], value) if isinstance(value, dict) else {}
        value = members.get(name, UNSET)
    return value


def _ratio(amount: float, by: float) -> float:
    return round(amount / by, 3) if by else 0.0
