"""The Python client's driver with one thing broken: `python mutant_host.py NAME`."""

import runpy
import sys
from pathlib import Path

from host_mutants import answers, events, shutdown, startup_and_commands, worker_loss
from support.protocol.mutation import mutants

DRIVER = Path(__file__).parents[3] / "clients" / "python" / "conformance_driver.py"
NOT_MADE = "the mutation cannot be made"
MUTANTS = mutants(worker_loss, events, answers, startup_and_commands, shutdown)


def command(name: str) -> list[str]:
    """Return the command that runs a mutant."""
    return [sys.executable, __file__, name]


if __name__ == "__main__":
    try:
        MUTANTS[sys.argv[1]].mutate()
    except Exception as error:
        sys.exit(f"{NOT_MADE}: {error}")
    sys.path.insert(0, str(DRIVER.parent))
    sys.argv = [str(DRIVER)]
    runpy.run_path(str(DRIVER), run_name="__main__")
