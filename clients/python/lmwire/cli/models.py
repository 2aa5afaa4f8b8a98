"""`lmwire models`: run the worker's listing of the models on this machine."""

import subprocess
from argparse import Namespace

from ..child_process import child_environment
from ..errors import LmwireError
from ..worker_programs import listing_command
from .errors import CliError


def run(arguments: Namespace) -> int:
    """Run the listing, and return its exit code."""
    try:
        command = listing_command(*[option for option in ("--all", "--json") if getattr(arguments, option[2:])])
    except LmwireError as error:
        raise CliError(str(error)) from None
    return subprocess.run(command, check=False, env=child_environment()).returncode
