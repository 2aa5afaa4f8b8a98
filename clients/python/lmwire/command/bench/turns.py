"""Two speeds, measured in turns, so that a busy machine slows both."""

from collections.abc import Callable

from .figures import Figure

Pairs = list[tuple[float, float]]
"""Rates a second: what is compared with, and what is measured."""


def in_turns(rounds: int, base: Callable[[], float], measured: Callable[[], float]) -> Pairs:
    """Both rates, one after the other, as often as asked for, after a first turn that only warms up."""
    return [(base(), measured()) for _ in range(1 + rounds)][1:]


def ratio(name: str, pairs: Pairs, target: float, unit: str) -> Figure:
    """The median of the pairs' ratios, with its pair: within one the machine is equally busy."""
    base, measured = _middle(pairs)
    return Figure(name, measured / base, "x", target, f"{measured:,.0f} of {base:,.0f} {unit}", _half(_ratios(pairs)))


def sooner(name: str, pairs: Pairs, target: float) -> Figure:
    """The same of what takes so long that its time says more than its rate."""
    base, measured = _middle(pairs)
    detail = f"{1e3 / measured:,.1f} instead of {1e3 / base:,.1f} ms"
    return Figure(name, measured / base, "x", target, detail, _half(_ratios(pairs)))


def extra_ms(name: str, pairs: Pairs, target: float, unit: str) -> Figure:
    """The median of what one of the measured takes longer, in milliseconds."""
    extras = sorted((1e3 / measured - 1e3 / base, 1e3 / base) for base, measured in pairs)
    extra, base = extras[len(extras) // 2]
    detail = f"{base + extra:.2f} instead of {base:.2f} ms {unit}"
    return Figure(name, extra, "ms", target, detail, _half([extra for extra, _ in extras]))


def _middle(pairs: Pairs) -> tuple[float, float]:
    return sorted(pairs, key=lambda rates: rates[1] / rates[0])[len(pairs) // 2]


def _ratios(pairs: Pairs) -> list[float]:
    return [measured / base for base, measured in pairs]


def _half(values: list[float]) -> tuple[float, float]:
    """Between which the middle half of the values lies, or more where they are few."""
    values, left_out = sorted(values), len(values) // 4
    return values[left_out], values[-1 - left_out]
