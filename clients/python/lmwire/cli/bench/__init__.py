"""`lmwire bench`: run a benchmark and print its results."""

import atexit
import json
import sys
from argparse import Namespace
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from lmwire_protocol.extras import not_installed

from ..errors import OK, USAGE, CliError
from . import plotting
from .comparison import history_path
from .plotting import Figure
from .results import Result, as_json, format_line, format_table, machine_facts


def run(arguments: Namespace) -> int:
    """Run the benchmark that the command line names, and return the exit code."""
    if arguments.model is not None and not (arguments.model / "config.json").is_file():
        raise CliError(f"{arguments.model} is not a model's folder: it has no config.json", USAGE)
    benchmark = _load(arguments.benchmark)
    # This process and the programs that it starts load what MLX has compiled for them.
    import_module("lmwire_worker.process.private_directory").use_private_directory(atexit.register)
    results: list[Result] = []
    own = [getattr(arguments, name) for name in ("ranks", "shared_tokens") if name in arguments]
    for result in benchmark.measure(arguments.model, arguments.tokens, arguments.rounds, *own):
        results.append(result)
        print(f"measured: {format_line(result)}", file=sys.stderr)
    machine = machine_facts()
    model = {} if arguments.model is None else {"model": str(arguments.model)}
    report = {"machine": machine, **model, "figures": as_json(results)}
    if arguments.save:
        _save(report, history_path(arguments.save, arguments.benchmark, machine, model.get("model")))
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        print(format_table(results))
        print("\nmeasured on " + ", ".join(f"{name} {value}" for name, value in machine.items()))
    if arguments.plot:
        # stdout has the JSON, so the plot in the terminal goes to stderr.
        with redirect_stdout(sys.stderr if arguments.json else sys.stdout):
            plotting.plot(
                [Figure(name=r.name, value=r.value, unit=r.unit, target=r.target) for r in results], arguments.plot
            )
    return OK


def _save(report: dict[str, Any], path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=2) + "\n")
    except OSError as error:
        raise CliError(f"--save: cannot write {path}: {error.strerror}") from None
    print(f"saved: {path}", file=sys.stderr)


def _load(name: str) -> ModuleType:
    try:
        return import_module(f".benchmarks.{name}", __name__)
    except ModuleNotFoundError as error:
        if error.name != "uvloop":  # the HTTP client of the benchmarks needs it
            raise
        raise CliError(not_installed("uvloop", "http")) from error
