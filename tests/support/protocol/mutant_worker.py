"""The mock worker with one thing broken: `python mutant_worker.py NAME`."""

import sys
from pathlib import Path

from lmwire_worker.__main__ import main
from support.protocol.mutation import mutants
from worker_mutants import calls, choices, ends, lines, memory, order, terminals

MUTANTS = mutants(terminals, choices, calls, lines, order, memory, ends)

CALLING = ("p-1-required", "p-2-no-calls")
"""Transcripts that catch their mutant only if the mock calls a tool."""
CALLS = ("--scenario", str(Path(__file__).with_name("calling.json")))
"""Options of a mock that calls a tool."""


def command(name: str) -> list[str]:
    """Return the command that runs a mutant."""
    calls = CALLS if MUTANTS[name].caught_by in CALLING else ()
    return [sys.executable, __file__, name, "--mock", *calls]


if __name__ == "__main__":
    MUTANTS[sys.argv[1]].mutate()
    main(sys.argv[2:])
