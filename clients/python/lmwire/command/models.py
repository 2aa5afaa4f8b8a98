"""`lmwire models`. What can run is the worker's knowledge, and so is the listing: this starts it."""

import subprocess
import sys
from argparse import Namespace


def run(arguments: Namespace) -> int:
    options = [option for option in ("--all", "--json") if getattr(arguments, option[2:])]
    return subprocess.run([sys.executable, "-m", "lmwire_worker.models", *options], check=False).returncode
