"""Two speeds measured in turns, so that a busy machine slows both, and the results that they give."""

from collections.abc import Callable

from .results import Result

Pairs = list[tuple[float, float]]
"""Pairs of rates a second: the baseline's, and the one that is measured."""


def measure_pairs(rounds: int, base: Callable[[], float], measured: Callable[[], float]) -> Pairs:
    """Measure both rates in turns.

    Args:
        rounds: Number of pairs to return. One more round runs first, as a warm-up.
        base: Measures the baseline's rate a second.
        measured: Measures the rate to compare with it.
    """
    return [(base(), measured()) for _ in range(1 + rounds)][1:]


def speed_ratio(name: str, pairs: Pairs, target: float, unit: str) -> Result:
    """Return the median ratio of the pairs: the machine is equally busy during both halves of a pair.

    Args:
        name: Name of the result.
        pairs: Rates of the baseline and of the one that is measured.
        target: Lowest ratio that passes.
        unit: Unit of the rates, for the detail.
    """
    base, measured = _median_pair(pairs)
    detail = f"{measured:,.0f} of {base:,.0f} {unit}"
    return Result(name, measured / base, "x", target, detail, _middle_half(_ratios(pairs)), measured)


def latency_ratio(name: str, pairs: Pairs, target: float) -> Result:
    """Return the same ratio with times as its detail, for events that take long.

    Args:
        name: Name of the result.
        pairs: Rates of the baseline and of the one that is measured.
        target: Lowest ratio that passes.
    """
    base, measured = _median_pair(pairs)
    detail = f"{1e3 / measured:,.1f} instead of {1e3 / base:,.1f} ms"
    return Result(name, measured / base, "x", target, detail, _middle_half(_ratios(pairs)))


def extra_latency(name: str, pairs: Pairs, target: float, unit: str) -> Result:
    """Return the median time that one event takes longer than the baseline's, in milliseconds.

    Args:
        name: Name of the result.
        pairs: Rates of the baseline and of the one that is measured.
        target: Longest time that passes, in milliseconds.
        unit: Words that follow the times in the detail.
    """
    extras = sorted((1e3 / measured - 1e3 / base, 1e3 / base) for base, measured in pairs)
    extra, base = extras[len(extras) // 2]
    detail = f"{base + extra:.2f} instead of {base:.2f} ms {unit}"
    return Result(name, extra, "ms", target, detail, _middle_half([extra for extra, _ in extras]))


def _median_pair(pairs: Pairs) -> tuple[float, float]:
    """Return the pair with the median ratio; the lower one of two, so that no result looks better than it is."""
    return sorted(pairs, key=lambda rates: rates[1] / rates[0])[(len(pairs) - 1) // 2]


def _ratios(pairs: Pairs) -> list[float]:
    return [measured / base for base, measured in pairs]


def _middle_half(values: list[float]) -> tuple[float, float]:
    """Return the bounds of the middle half of the values. Of few values, more than half lie within them."""
    values, left_out = sorted(values), len(values) // 4
    return values[left_out], values[-1 - left_out]
