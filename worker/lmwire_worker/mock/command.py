"""`lmwire mock`: the command line."""

import argparse
from collections.abc import Sequence
from textwrap import dedent
from typing import NamedTuple, NoReturn

from lmwire_protocol.command_line import ArgumentParser, Flag

from .catalogue import FAULTS, Chosen, choose
from .replies import Reply
from .scenario import Rule, read_rules


class Options(NamedTuple):
    """The parsed command line."""

    rules: list[Rule]
    faults: list[Chosen]
    model: str | None = None


def parse(arguments: list[str]) -> Options:
    """Parse the command line. Exits on wrong usage, and after printing help or the faults."""
    options = make_parser().parse_args(arguments)
    fallback = Rule(Reply(text=options.text, token_ms=options.token_ms))
    return Options([*options.scenario, fallback], options.fault, options.model)


class _ListFaults(argparse.Action):
    """The option that prints the faults and exits."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print the faults to stdout, and exit."""
        print(_list_faults())
        parser.exit()


def make_parser() -> ArgumentParser:
    """Return the parser of `lmwire mock`."""
    parser = ArgumentParser(
        prog="lmwire mock",
        description=dedent("""\
            Run a worker without a model, to test a host program: the real protocol around an engine that needs no
            model library. Load the model `mock`. It answers each prompt with the prompt's words, a token each, and
            repeats them up to max_tokens. A scenario scripts other replies, and faults make it misbehave."""),
        epilog=dedent("""\
            examples:
              lmwire mock                                       echo
              lmwire mock --text "Hello, world!" --token-ms 20  the same answer to every prompt, a token every 20 ms
              lmwire mock --scenario weather.json               replies from a file; see MOCK.md
              lmwire mock --fault crash-mid-stream              die by SIGKILL after the third token
              lmwire mock --fault crash-mid-stream:exit=70,after=1 --fault grandchild
            """),
    )
    parser.add_argument("--process-group", action=Flag, help="lead a process group of its own, as `lmwire worker` can")
    parser.add_argument(
        "--model", metavar="NAME", help="the model of a load that names none, such as `mock`; as of `lmwire worker`"
    )
    parser.add_argument("--text", metavar="TEXT", help="answer with this instead of the prompt, a token for each word")
    parser.add_argument(
        "--token-ms", type=_milliseconds, default=0, metavar="MS", help="take MS milliseconds for each token"
    )
    parser.add_argument(
        "--scenario", type=_scenario, default=[], metavar="FILE", help="reply by the rules in this JSON file"
    )
    parser.add_argument(
        "--fault",
        type=_fault,
        action="append",
        default=[],
        metavar="NAME[:PARAMETER=VALUE,...]",
        help="misbehave in this way; repeatable",
    )
    parser.add_argument("--list-faults", action=_ListFaults, help="list the faults and their parameters, and exit")
    return parser


def _list_faults() -> str:
    lines = []
    for name, fault in FAULTS.items():
        lines.append(f"{name:24}{fault.summary}")
        defaults = (f"{key}={'none' if value is None else value}" for key, value in fault.parameters.items())
        if fault.parameters:
            lines.append(f"{'':24}  {', '.join(defaults)}")
    return "\n".join(lines)


def _milliseconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError
    return value


def _scenario(path: str) -> list[Rule]:
    try:
        return read_rules(path)
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _fault(text: str) -> Chosen:
    try:
        return choose(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
