"""The parsers of all commands, with those that `lmwire` itself does not parse: `serve`, `worker` and `mock`."""

import re
from importlib import import_module
from typing import Final

from lmwire_protocol.command_line import Flag

from .arguments import make_parser
from .arguments.commands import subcommands_of
from .option_sources import SourcedParser

_WORKER_OPTION: Final = re.compile(r"^  --(\[no-\])?([a-z-]+)(?: ([A-Z]+))?(.*(?:\n {20,}.*)*)", re.MULTILINE)


def complete_parser() -> SourcedParser:
    """Return the parser of `lmwire` with the options of every command."""
    parser = make_parser()
    subcommands_of(parser).update(
        worker=_worker_parser(),
        mock=import_module("lmwire_worker.mock.command").make_parser(),
        serve=import_module("lmwire_http.cli.parser").make_parser(),
    )
    return parser


def _worker_parser() -> SourcedParser:
    """Return a parser with the options of the worker, which has a text instead: argparse would delay its start."""
    parser = SourcedParser(
        prog="lmwire worker",
        description="Be a worker: read commands as JSON Lines from stdin, and write events to stdout. See PROTOCOL.md.",
    )
    for is_flag, name, value, text in _WORKER_OPTION.findall(import_module("lmwire_worker.__main__").USAGE):
        help = " ".join(str(text).split())
        if name in ("mock", "version"):
            parser.add_argument(f"--{name}", action="version", version="", help=help)
        elif is_flag:
            parser.add_argument(f"--{name}", action=Flag, help=help)
        elif name != "help":
            parser.add_argument(f"--{name}", metavar=value, help=help)
    return parser
