"""`lmwire bench`: runs a benchmark and prints what it found."""

import atexit
import json
import sys
from argparse import Namespace
from importlib import import_module

from ..failures import OK, USAGE, Failure
from .figures import as_json, line, machine, table


def run(arguments: Namespace) -> int:
    if not (arguments.model / "config.json").is_file():
        raise Failure(f"{arguments.model} is not a model's folder: it has no config.json", USAGE)
    try:
        benchmark = import_module(f".{arguments.benchmark}", __name__)
    except ModuleNotFoundError as error:
        if error.name != "uvloop":  # with which servers are asked
            raise
        raise Failure("uvloop is not installed: pip install 'lmwire[http]'") from error
    # This process and the programs that are compared load what MLX has compiled for them.
    import_module("lmwire_worker.process.private_directory").use_private_directory(atexit.register)
    figures = []
    for figure in benchmark.measure(arguments.model, arguments.tokens, arguments.rounds):
        figures.append(figure)
        print(f"measured: {line(figure)}", file=sys.stderr)
    where = machine()
    if arguments.json:
        print(json.dumps({"machine": where, "model": str(arguments.model), "figures": as_json(figures)}, indent=2))
    else:
        print(table(figures))
        print("\nmeasured on " + ", ".join(f"{name} {value}" for name, value in where.items()))
    return OK
