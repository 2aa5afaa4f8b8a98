"""What the benchmark found, and how it is printed."""

import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lmwire_protocol import __version__


class Figure(NamedTuple):
    """One measured figure and what it should be."""

    name: str
    value: float
    unit: Literal["x", "ms"]
    """`x`: a ratio of two speeds measured in turns."""
    target: float
    detail: str
    """The absolute numbers behind it."""
    half: tuple[float, float] | None = None
    """Of a median, where the middle half of its rounds lay: what a machine's moods make of it."""

    @property
    def passed(self) -> bool:
        """A ratio should be at least its target, a time at most."""
        return self.value >= self.target if self.unit == "x" else self.value <= self.target


def line(figure: Figure) -> str:
    """A figure by itself, while others are still being measured."""
    return f"{figure.name}: {_numbers(figure)[0]}, {_detail(figure)}"


def table(figures: Sequence[Figure]) -> str:
    """The figures as lines of columns."""
    rows = [("figure", "value", "target", "", "")]
    rows += [
        (figure.name, *_numbers(figure), "pass" if figure.passed else "MISS", _detail(figure)) for figure in figures
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def as_json(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    """The figures as objects."""
    return [figure._asdict() | {"passed": figure.passed} for figure in figures]


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("mlx", "mlx-lm")},
        "lmwire": __version__,
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def _detail(figure: Figure) -> str:
    if figure.half is None:
        return figure.detail
    low, high = figure.half
    return f"{figure.detail}; half of the rounds {low:.2f} to {high:.2f}"


def _numbers(figure: Figure) -> tuple[str, str]:
    """The value and the target, with as many digits as tell them apart: what is not equal does not look equal."""
    digits = 2
    while figure.value != figure.target and round(figure.value, digits) == round(figure.target, digits):
        digits += 1
    unit, bound = ("x", "≥") if figure.unit == "x" else (" ms", "≤")
    return f"{figure.value:.{digits}f}{unit}", f"{bound} {figure.target:.{digits}f}{unit}"
