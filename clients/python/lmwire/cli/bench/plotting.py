"""Plots of benchmark results: bars in the terminal, and a PNG file by matplotlib."""

import shutil
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from lmwire_protocol.extras import not_installed

from ..errors import OK, USAGE, CliError

_MAX_BYTES: Final = 16 * 1024 * 1024
_AXES: Final = {
    "x": "ratio; above the mark is better",
    "ms": "milliseconds; below the mark is better",
    "MB": "megabytes; below the mark is better",
}


class Figure(msgspec.Struct):
    """A measured value in a file that `lmwire bench --json` printed."""

    name: str
    value: float
    unit: Literal["x", "ms", "MB"]
    target: float
    half: tuple[float, float] | None = None
    """Bounds of the middle half of the rounds."""


class Report(msgspec.Struct):
    """Output of `lmwire bench --json`."""

    figures: list[Figure]
    machine: dict[str, Any] = {}


def run(arguments: Namespace) -> int:
    """Plot the results of the files that the command line names, and return the exit code."""
    figures = _labelled([read_report(path) for path in arguments.results])
    if not figures:
        raise CliError("the files have no figures to plot", USAGE)
    plot(figures, arguments.plot)
    return OK


def _labelled(reports: Sequence[Report]) -> list[Figure]:
    """Return all figures. With several versions, those of one name stand together, and the version is in each name."""
    versions = {str(report.machine.get("lmwire", "?")) for report in reports}
    if len(versions) == 1:
        return [figure for report in reports for figure in report.figures]
    names = dict.fromkeys(figure.name for report in reports for figure in report.figures)
    return [
        msgspec.structs.replace(figure, name=f"{report.machine.get('lmwire', '?')}: {name}")
        for name in names
        for report in reports
        for figure in report.figures
        if figure.name == name
    ]


def plot(figures: Sequence[Figure], path: Path | None) -> None:
    """Print a plot of the figures, and write another into a file.

    Args:
        figures: The values.
        path: The PNG file; None for none.
    """
    print_plot(figures)
    if path:
        _write_png(figures, path)


def print_plot(figures: Sequence[Figure]) -> None:
    """Print a bar for each figure, with a mark at its target, and its value."""
    columns = shutil.get_terminal_size().columns
    label = min(max(len(figure.name) for figure in figures), columns // 2)
    for unit, title in _AXES.items():
        if shown := [figure for figure in figures if figure.unit == unit]:
            print(f"\n{title}")
            most = max(max(figure.value, figure.target) for figure in shown) or 1.0
            for figure in shown:
                bar = _bar(figure, (max(columns - label - 12, 10) - 1) / most)
                print(f"{figure.name[:label]:{label}} {bar} {figure.value:.2f}")


def _bar(figure: Figure, columns_per_unit: float) -> str:
    """Return a bar, with `|` in the column of the target."""
    length, target = (round(number * columns_per_unit) for number in (figure.value, figure.target))
    bar = ("█" * length).ljust(target)
    return f"{bar[:target]}|{bar[target + 1 :]}"


def _write_png(figures: Sequence[Figure], path: Path) -> None:
    _import_matplotlib().use("agg")  # needs no display
    pyplot = import_module("matplotlib.pyplot")
    units = [unit for unit in _AXES if any(figure.unit == unit for figure in figures)]
    canvas, axes = pyplot.subplots(len(units), squeeze=False, figsize=(10, 1.5 + 0.5 * len(figures)), layout="tight")
    for unit, (axis,) in zip(units, axes, strict=True):
        _draw(axis, [figure for figure in figures if figure.unit == unit], _AXES[unit])
    try:
        canvas.savefig(path, format="png", dpi=150)
    except OSError as error:
        raise CliError(f"--plot: cannot write {path}: {error.strerror}") from None
    finally:
        pyplot.close(canvas)


def _draw(axis: Any, figures: Sequence[Figure], title: str) -> None:
    rows = range(len(figures))
    bars = axis.barh(rows, [figure.value for figure in figures])
    axis.bar_label(bars, fmt="%.2f", padding=3)
    axis.scatter([figure.target for figure in figures], rows, marker="|", s=300, color="black", label="target")
    axis.set_yticks(rows, [figure.name for figure in figures])
    axis.invert_yaxis()
    axis.set_xlabel(title)
    axis.legend()


def read_report(path: Path) -> Report:
    """Return the report in a file.

    Raises:
        CliError: The file cannot be read, or has another form.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise CliError(f"{path}: is longer than {_MAX_BYTES:,} bytes", USAGE)
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}", USAGE) from None
    except msgspec.DecodeError as error:
        raise CliError(f"{path}: is not what `lmwire bench --json` prints: {error}", USAGE) from None


def _import_matplotlib() -> Any:
    try:
        return import_module("matplotlib")
    except ModuleNotFoundError:
        raise CliError(not_installed("matplotlib", "plot")) from None
