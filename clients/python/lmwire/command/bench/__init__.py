"""`lmwire bench`: runs a benchmark and prints what it found."""

import json
import sys
from argparse import Namespace

from ..failures import OK, USAGE, Failure
from . import cache, draft, generation, http, mixed, pipe, vision
from .figures import as_json, line, machine, table

_BENCHMARKS = {
    "pipe": pipe.measure,
    "generation": generation.measure,
    "mixed": mixed.measure,
    "cache": cache.measure,
    "draft": draft.measure,
    "vision": vision.measure,
    "http": http.measure,
}


def run(arguments: Namespace) -> int:
    if not (arguments.model / "config.json").is_file():
        raise Failure(f"{arguments.model} is not a model's folder: it has no config.json", USAGE)
    figures = []
    for figure in _BENCHMARKS[arguments.benchmark](arguments.model, arguments.tokens, arguments.rounds):
        figures.append(figure)
        print(f"measured: {line(figure)}", file=sys.stderr)
    where = machine()
    if arguments.json:
        print(json.dumps({"machine": where, "model": str(arguments.model), "figures": as_json(figures)}, indent=2))
    else:
        print(table(figures))
        print("\nmeasured on " + ", ".join(f"{name} {value}" for name, value in where.items()))
    return OK
