"""Arguments of `lmwire conformance`."""

from pathlib import Path
from textwrap import dedent

from ..option_sources import SourcedParser
from .parser import Subcommands, run_later


def add_conformance(subcommands: Subcommands) -> None:
    """Add the subcommand, with one of its own for each side of the protocol."""
    parser = subcommands.add_parser("conformance", help="test a worker or a host against PROTOCOL.md, in any language")
    sides = parser.add_subparsers(title="sides", metavar="SIDE", required=True, dest="side")
    worker = sides.add_parser(
        "worker",
        help="play every transcript of protocol/transcripts against a worker",
        description=dedent("""\
            Play the transcripts of protocol/transcripts against a worker, each with at least one new process. Every
            line that it writes is checked against PROTOCOL.md. Exits with 0 when all cases pass, with 1 otherwise."""),
        epilog="example:\n  lmwire conformance worker --model ./my-model -- ./my-worker --its-option",
    )
    worker.add_argument("--model", default="mock", metavar="PATH", help="a model to load (default: mock)")
    _add_kit_options(worker, "the command that runs the worker", seconds=60.0)
    host = sides.add_parser(
        "host",
        help="play a worker, faults included, against a host",
        description=dedent("""\
            Control a host through a small driver around it, and be its worker: first one without faults, then ones
            that die, flood stderr, write garbage or do not read. HOSTS.md, beside the kit, specifies the driver.
            Exits with 0 when all cases pass, with 1 otherwise."""),
        epilog="example:\n  lmwire conformance host --only H-5 -- ./my-driver",
    )
    _add_kit_options(host, "the command that runs the driver", seconds=10.0)


def _add_kit_options(parser: SourcedParser, program: str, *, seconds: float) -> None:
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="run this rule or case; repeatable")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="known failures, one a line, as `name: reason`")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML to this file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write JSON to this file")
    parser.add_argument(
        "--timeout", type=float, default=seconds, metavar="S", help=f"longest wait, in seconds (default: {seconds:g})"
    )
    parser.add_argument("command", nargs="+", metavar="COMMAND", help=f"{program}; write -- before it")
    parser.set_defaults(run=run_later("conformance"))
