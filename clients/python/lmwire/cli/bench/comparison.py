"""`lmwire bench compare`: two results of one benchmark, and whether each figure differs beyond its rounds."""

import re
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import OK, USAGE, CliError
from .plotting import Figure, read_report

_RATES_CHANGE_WITH: Final = ("device", "processor", "cores", "system", "python", "mlx", "mlx-lm")
"""Facts of a machine that change times. Ratios of two sides that were measured in turns change with it less."""


class Change(msgspec.Struct, frozen=True):
    """A figure in two reports."""

    before: Figure
    after: Figure

    @property
    def gain(self) -> float:
        """Ratio of the values: above 1 the second one is better."""
        higher, lower = (self.after, self.before) if self.after.unit == "x" else (self.before, self.after)
        return higher.value / lower.value if lower.value else float("inf")

    @property
    def verdict(self) -> str:
        """`better` or `worse` if the middle halves of the rounds lie apart; empty without rounds, which show noise."""
        if self.before.half is None or self.after.half is None:
            return ""
        (low, high), (new_low, new_high) = self.before.half, self.after.half
        if new_low <= high and low <= new_high:
            return "as before"
        return "better" if self.gain > 1 else "worse"


def run(arguments: Namespace) -> int:
    """Compare the two files that the command line names, and return the exit code."""
    before, after = read_report(arguments.before), read_report(arguments.after)
    changes = compare(before.figures, after.figures)
    if not changes:
        raise CliError("the files have no figure in common; compare two runs of the same benchmark", USAGE)
    print(format_changes(changes))
    if other := [name for name in _RATES_CHANGE_WITH if before.machine.get(name) != after.machine.get(name)]:
        print(f"\nThe runs differ in {', '.join(other)}: compare ratios (x), and no times.")
    missing = {figure.name for figure in (*before.figures, *after.figures)} - {each.after.name for each in changes}
    if missing:
        print(f"\nOnly one of the files has: {'; '.join(sorted(missing))}.")
    return OK


def compare(before: Sequence[Figure], after: Sequence[Figure]) -> list[Change]:
    """Return the figures that both reports have, in the order of the second."""
    known = {(figure.name, figure.unit): figure for figure in before}
    return [Change(known[figure.name, figure.unit], figure) for figure in after if (figure.name, figure.unit) in known]


def format_changes(changes: Sequence[Change]) -> str:
    """Return a table of changes."""
    rows = [("figure", "before", "after", "gain", "")]
    rows += [
        (each.after.name, _value(each.before), _value(each.after), f"{each.gain:.2f}x", each.verdict)
        for each in changes
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _value(figure: Figure) -> str:
    space = "" if figure.unit == "x" else " "
    half = "" if figure.half is None else f" ({figure.half[0]:.2f} to {figure.half[1]:.2f})"
    return f"{figure.value:.2f}{space}{figure.unit}{half}"


# The history: a folder of results by version and machine.


def history_path(folder: Path, benchmark: str, machine: dict[str, Any], model: str | None) -> Path:
    """Return the file of a result in a folder: one for each version, machine, benchmark and model.

    Args:
        folder: The folder of all results.
        benchmark: Name of the benchmark.
        machine: The facts of `machine_facts`.
        model: The model's folder; None for a benchmark without.
    """
    place = _name(f"{machine['device']}-{machine['cores']}-cores")
    what = benchmark if model is None else f"{benchmark}-{_name(Path(model).resolve().name)}"
    return folder / _name(str(machine["lmwire"])) / place / f"{what}.json"


def _name(text: str) -> str:
    """Return a text as the name of a file or folder, which no part of it can leave."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unknown"
