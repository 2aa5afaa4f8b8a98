"""The command line of `lmwire serve`."""

import argparse
import shlex
from collections.abc import Sequence

from .serving import serve
from .settings import Settings


def main(argv: Sequence[str]) -> int:
    """Serves until it is told to end."""
    parser = argparse.ArgumentParser(prog="lmwire serve", description="Serve models over HTTP.", allow_abbrev=False)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080, help="0 takes any that is free")
    parser.add_argument("--worker", dest="command", type=lambda text: tuple(shlex.split(text)), metavar="COMMAND")
    options = {name: value for name, value in vars(parser.parse_args(argv)).items() if value is not None}
    return serve(Settings(**{**options, "models": tuple(options["models"])}))
