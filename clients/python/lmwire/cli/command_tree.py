"""The parsers of all commands, with those that `lmwire` itself does not parse: `serve`, `worker` and `mock`."""

import re
from importlib import import_module
from typing import Any, Final

from .arguments import make_parser
from .arguments.commands import subcommands_of
from .arguments.parser import Parser

_WORKER_OPTION: Final = re.compile(r"^  (--[a-z-]+)(?: ([A-Z]+))?(.*(?:\n {20,}.*)*)", re.MULTILINE)


def complete_parser() -> Parser:
    """Return the parser of `lmwire` with the options of every command."""
    parser = make_parser()
    subcommands_of(parser).update(
        worker=_worker_parser(),
        mock=import_module("lmwire_worker.mock.command").make_parser(),
        serve=import_module("lmwire_http.cli.parser").make_parser(),
    )
    return parser


def _worker_parser() -> Parser:
    """Return a parser with the options of the worker, which has a text instead: argparse would delay its start."""
    parser = Parser(
        prog="lmwire worker",
        description="Be a worker: read commands as JSON Lines from stdin, and write events to stdout. See PROTOCOL.md.",
    )
    for name, value, text in _WORKER_OPTION.findall(import_module("lmwire_worker.__main__").USAGE):
        help = " ".join(text.split())
        if name == "--version":
            parser.add_argument(name, action="version", version="", help=help)
        elif name != "--help":
            options: dict[str, Any] = {"metavar": value} if value else {"action": "store_true"}
            parser.add_argument(name, help=help, **options)
    return parser
