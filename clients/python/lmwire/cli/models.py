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
        flags = ("all", "json", "tool_formats")
        given = [f"--{flag.replace('_', '-')}" for flag in flags if getattr(arguments, flag)]
        command = listing_command(*given)
    except LmwireError as error:
        raise CliError(str(error)) from None
    return subprocess.run(command, check=False, env=child_environment()).returncode
