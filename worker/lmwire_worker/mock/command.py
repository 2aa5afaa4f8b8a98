"""`lmwire mock`: the command line."""

import argparse
import sys
from textwrap import dedent
from typing import NamedTuple, NoReturn

from .catalogue import FAULTS, Chosen, choose
from .replies import Reply
from .scenario import Rule, read_rules

EXIT_USAGE = 64


class Options(NamedTuple):
    """What was asked for."""

    rules: list[Rule]
    faults: list[Chosen]


def parse(arguments: list[str]) -> Options:
    """Reads the command line. Exits on wrong usage, and when it asks for text only."""
    options = _parser().parse_args(arguments)
    if options.list_faults:
        print(_list_faults())
        sys.exit(0)
    fallback = Rule(Reply(text=options.text, token_ms=options.token_ms))
    return Options([*options.scenario, fallback], options.fault)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\nSee {self.prog} --help\n")


def _parser() -> _Parser:
    parser = _Parser(
        prog="lmwire mock",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=dedent("""\
            Be a worker without a model, to test a host program with: the real protocol around an engine that needs
            no model library. Load the model `mock`; each prompt is answered with its own words, a token each, again
            and again up to max_tokens. A scenario scripts other replies, and faults make it misbehave."""),
        epilog=dedent("""\
            examples:
              lmwire mock                                       echo
              lmwire mock --text "Hello, world!" --token-ms 20  one answer to everything, at a model's pace
              lmwire mock --scenario weather.json               what the file says; MOCK.md describes it
              lmwire mock --fault crash-mid-stream              die by SIGKILL after the third token
              lmwire mock --fault crash-mid-stream:exit=70,after=1 --fault grandchild
            """),
    )
    parser.add_argument("--text", metavar="TEXT", help="answer with this instead of the prompt, a token for each word")
    parser.add_argument("--token-ms", type=_milliseconds, default=0, metavar="MS", help="take so long for each token")
    parser.add_argument(
        "--scenario", type=_scenario, default=[], metavar="FILE", help="reply as the rules in this JSON file say"
    )
    parser.add_argument(
        "--fault",
        type=_fault,
        action="append",
        default=[],
        metavar="NAME[:PARAMETER=VALUE,...]",
        help="misbehave in this way; can be given again",
    )
    parser.add_argument("--list-faults", action="store_true", help="list the faults and their parameters, and leave")
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
