"""`lmwire models`. What can run is the worker's knowledge, and so is the listing: this starts it."""

import subprocess
import sys
from argparse import Namespace
from importlib.util import find_spec

from .failures import Failure


def run(arguments: Namespace) -> int:
    if find_spec("huggingface_hub") is None:
        raise Failure("the worker's libraries are not installed: pip install 'lmwire[worker]'")
    options = [option for option in ("--all", "--json") if getattr(arguments, option[2:])]
    return subprocess.run([sys.executable, "-m", "lmwire_worker.models", *options], check=False).returncode
