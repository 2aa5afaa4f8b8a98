"""`lmwire models`. What can run is the worker's knowledge, and so is the listing: this starts it."""

import subprocess
from argparse import Namespace

from ..children import child_environment
from ..errors import LmwireError
from ..listing import listing_command
from .failures import Failure


def run(arguments: Namespace) -> int:
    try:
        command = listing_command(*[option for option in ("--all", "--json") if getattr(arguments, option[2:])])
    except LmwireError as error:
        raise Failure(str(error)) from None
    return subprocess.run(command, check=False, env=child_environment()).returncode
