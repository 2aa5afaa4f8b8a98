"""Benchmark results, and their forms: a line, a table, JSON."""

import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lmwire_protocol import __version__


class Result(NamedTuple):
    """A measured value and its target."""

    name: str
    value: float
    unit: Literal["x", "ms", "MB"]
    """`x` for a ratio of two speeds that were measured in turns, `ms` for a time, `MB` for memory."""
    target: float
    detail: str
    """The absolute numbers that the value comes from."""
    middle_half: tuple[float, float] | None = None
    """Bounds of the middle half of the rounds, for a median: they show how busy the machine was."""
    absolute: float | None = None
    """The rate from which a ratio comes, for programs that plot it; None for other values."""

    @property
    def passed(self) -> bool:
        """Return whether the value meets its target: a ratio is at least as high, a time or a size at most as high."""
        return self.value >= self.target if self.unit == "x" else self.value <= self.target


def format_line(result: Result) -> str:
    """Return one result as a line, to print while others are still being measured."""
    return f"{result.name}: {_numbers(result)[0]}, {_detail(result)}"


def format_table(results: Sequence[Result]) -> str:
    """Return the results as a table with aligned columns."""
    rows = [("figure", "value", "target", "", "")]
    rows += [
        (result.name, *_numbers(result), "pass" if result.passed else "MISS", _detail(result)) for result in results
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def as_json(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the results as objects for JSON."""
    return [
        {
            "name": result.name,
            "value": result.value,
            "unit": result.unit,
            "target": result.target,
            "detail": result.detail,
            "half": result.middle_half,
            **({} if result.absolute is None else {"absolute": result.absolute}),
            "passed": result.passed,
        }
        for result in results
    ]


def machine_facts() -> dict[str, Any]:
    """Return the device of models, the processor, the system and the versions that the results depend on."""
    return {
        "device": _device(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("mlx", "mlx-lm")},
        "lmwire": __version__,
    }


def _device() -> str:
    """Return the name of the GPU, or of the processor where MLX computes on that."""
    import mlx.core as mx  # no other command needs it

    return str(mx.device_info().get("device_name") or _processor())


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def _detail(result: Result) -> str:
    if result.middle_half is None:
        return result.detail
    low, high = result.middle_half
    return f"{result.detail}; half of the rounds {low:.2f} to {high:.2f}"


def _numbers(result: Result) -> tuple[str, str]:
    """Return the value and the target, with enough digits that two different numbers look different."""
    digits = 2
    while result.value != result.target and round(result.value, digits) == round(result.target, digits):
        digits += 1
    unit, bound = ("x", "≥") if result.unit == "x" else (f" {result.unit}", "≤")
    return f"{result.value:.{digits}f}{unit}", f"{bound} {result.target:.{digits}f}{unit}"
