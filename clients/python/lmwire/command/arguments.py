"""The command line: what can be typed, and the help for it. What a subcommand does is imported when it runs."""

import argparse
import importlib
import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any, NoReturn

import lmwire_protocol

from .failures import USAGE

BUILT_IN = "builtin:tiny"
"""The model to talk to when none is named: it needs no network."""


class Parser(argparse.ArgumentParser):
    """argparse with help that keeps its lines, and with the exit code of sysexits.h for wrong usage."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message}\nSee {self.prog} --help\n")


def parse(argv: list[str]) -> argparse.Namespace:
    """The parsed command line; its `run` is the function to call with it."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if "run" not in arguments:
        parser.print_help()
        parser.exit(USAGE)
    return arguments


def _parser() -> Parser:
    parser = Parser(
        prog="lmwire",
        description="Run MLX language models as child processes that speak one protocol over their pipes.",
        epilog=dedent("""\
            examples:
              lmwire chat                                    talk to the tiny model that is built in
              lmwire chat mlx-community/Qwen3-0.6B-4bit      talk to another
              git diff | lmwire chat MODEL -p "Review this"  one answer, in a pipeline
              lmwire models                                  what is on this machine and can run
              lmwire serve MODEL                             models over HTTP, at http://127.0.0.1:8080/v1
              lmwire worker                                  what a host program starts; see PROTOCOL.md
            """),
    )
    parser.add_argument("--version", action="version", version=f"lmwire {lmwire_protocol.__version__}")
    subcommands = parser.add_subparsers(title="subcommands", metavar="COMMAND")
    _add_workers(subcommands)
    _add_chat(subcommands)
    _add_models(subcommands)
    _add_bench(subcommands)
    _add_schema(subcommands)
    _add_conformance(subcommands)
    return parser


def _add_workers(subcommands: Any) -> None:
    # Listed for the help only: these never come here.
    subcommands.add_parser("worker", help="be a worker: read commands from stdin, write events to stdout")
    subcommands.add_parser("mock", help="be a worker without a model, scripted or faulty, to test a host with")
    subcommands.add_parser("serve", help="serve models over HTTP, in OpenAI's and Anthropic's shapes")


def _add_chat(subcommands: Any) -> None:
    parser = subcommands.add_parser(
        "chat",
        help="talk to a model, or get one answer in a pipeline",
        description=dedent("""\
            Talk to a model. On a terminal, a conversation: Ctrl-C stops an answer, Ctrl-D leaves, /help lists the rest.
            With -p, or with a pipe on stdin, one answer: stdin is the prompt, or follows the one of -p.
            Into a pipe goes the answer's plain text and nothing else."""),
        epilog=dedent("""\
            examples:
              lmwire chat ./my-model
              lmwire chat mlx-community/Qwen3-0.6B-4bit --system "Answer in French." --temperature 0.7
              lmwire chat MODEL -p "Write a haiku about pipes" > haiku.txt
              lmwire chat MODEL -p "Summarise this:" < notes.md
              lmwire chat MODEL -p "Who wrote it, and when?" --schema book.json < notes.md
              lmwire chat MODEL -p "What is on it?" --image photo.jpg
              lmwire chat MODEL --worker "ssh studio lmwire worker"
            """),
    )
    parser.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        default=os.environ.get("LMWIRE_MODEL", BUILT_IN),
        help=f"a folder, a hub id (owner/name) or an alias; $LMWIRE_MODEL or {BUILT_IN} when left out",
    )
    # What goes to the worker bears the name that it has there.
    parser.add_argument("--adapter", dest="adapter_path", metavar="FOLDER", help="a LoRA adapter of the model")
    parser.add_argument(
        "--draft", dest="draft_path", metavar="MODEL", help="a smaller model of the same tokens, to speed this one up"
    )
    parser.add_argument(
        "--context-len", type=int, metavar="N", help="tokens of the conversation (default: the model's)"
    )
    parser.add_argument("--kv-bits", type=int, choices=(4, 8), help="keep keys and values in so many bits")
    parser.add_argument("--force", action="store_true", default=None, help="load what does not seem to fit into memory")
    parser.add_argument("-p", "--prompt", help="answer this and leave")
    parser.add_argument(
        "--image",
        type=_image,
        action="append",
        default=[],
        metavar="FILE",
        help="show this with the first prompt; can be given again",
    )
    parser.add_argument("--system", metavar="TEXT", help="the system message")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="tokens of an answer at most (default: what fits)")
    parser.add_argument("--temperature", type=float, metavar="T", help="0 always takes the likeliest token (default)")
    parser.add_argument("--top-p", type=float, metavar="P", help="sample from the likeliest tokens that add up to P")
    parser.add_argument("--top-k", type=int, metavar="K", help="sample from the K likeliest tokens")
    parser.add_argument("--min-p", type=float, metavar="P", help="drop tokens below this share of the likeliest one's")
    parser.add_argument(
        "--xtc-probability", type=float, metavar="P", help="how often to leave the likeliest tokens out"
    )
    parser.add_argument(
        "--xtc-threshold", type=float, metavar="P", help="likeliest are those above this (default: 0.1)"
    )
    parser.add_argument("--repetition-penalty", type=float, metavar="R", help="above 1: repeat less (default: 1, off)")
    parser.add_argument("--presence-penalty", type=float, metavar="R", help="above 0: say new things (default: 0, off)")
    parser.add_argument("--frequency-penalty", type=float, metavar="R", help="above 0: the same, for each repetition")
    parser.add_argument(
        "--truncate", choices=("left", "middle"), help="what to leave out of a conversation that is too long"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="the same seed gives the same answer")
    parser.add_argument("--stop", action="append", metavar="TEXT", help="end before this text; can be given again")
    parser.add_argument(
        "--reasoning", choices=("auto", "on", "off"), help="think before answering (default: auto, as the model does)"
    )
    parser.add_argument("--reasoning-budget", type=int, metavar="N", help="tokens of thought at most")
    parser.add_argument("--schema", type=_json_file, metavar="FILE", help="answer with JSON of this JSON Schema")
    parser.add_argument(
        "--tools",
        type=_json_file,
        metavar="FILE",
        help="a JSON list of functions to call; you are asked for what they return",
    )
    parser.add_argument(
        "--worker",
        type=shlex.split,
        metavar="COMMAND",
        help="the command that runs the worker (default: one on this machine)",
    )
    parser.set_defaults(run=_lazily("chat"))


def _add_models(subcommands: Any) -> None:
    parser = subcommands.add_parser(
        "models",
        help="list the models on this machine that can run",
        description="List the models in the local hub cache that can run: type, quantisation, context and size.",
        epilog="To get one more, name it: lmwire chat owner/name downloads it.",
    )
    parser.add_argument("--all", action="store_true", help="also those that cannot run, and why")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.set_defaults(run=_lazily("models"))


def _add_bench(subcommands: Any) -> None:
    parser = subcommands.add_parser("bench", help="measure the worker on this machine")
    benchmarks = parser.add_subparsers(title="benchmarks", metavar="BENCHMARK", required=True, dest="benchmark")
    pipe = benchmarks.add_parser(
        "pipe",
        help="what the pipe costs, against the model library in one process",
        description=dedent("""\
            Measure what the worker and its pipe cost: streams against mlx_lm in one process, mixed samplers against
            greedy, starting, cancelling, and the event path alone. Both sides of a ratio are measured in turns, so
            that a busy machine slows both. Takes some minutes; the smaller the model, the harder the test."""),
        epilog="example:\n  lmwire bench pipe --model ./my-model --json",
    )
    generation = benchmarks.add_parser(
        "generation",
        help="what JSON of a schema and log-probabilities cost, against plain tokens",
        description=dedent("""\
            Measure what a request costs that asks for more than plain tokens: streams of JSON of a schema and streams
            with log-probabilities, against plain ones of the same worker, in turns. The smaller the model and the
            larger its vocabulary, the harder the test."""),
        epilog="example:\n  lmwire bench generation --model ./my-model",
    )
    mixed = benchmarks.add_parser(
        "mixed",
        help="what long prompts and long answers cost the short ones beside them",
        description=dedent("""\
            Measure how fast short streams are beside one of 8,192 tokens, how long running streams wait for a token
            while a prompt of 16,384 tokens is processed, and how much later its own first token comes for their sake.
            The model is taken as one whose context holds that."""),
        epilog="example:\n  lmwire bench mixed --model ./my-model",
    )
    cache = benchmarks.add_parser(
        "cache",
        help="how much sooner an answer begins when its prompt is known",
        description=dedent("""\
            Measure how much sooner the first token of a prompt of 4,096 tokens comes when it is cached, in memory or by
            an earlier worker on disk, and what a prompt costs that is not among 1,000 that are. The model is taken as
            one whose context holds that. What was just written is read from the system's own cache of the disk."""),
        epilog="example:\n  lmwire bench cache --model ./my-model",
    )
    draft = benchmarks.add_parser(
        "draft",
        help="what a draft model gives at best, and what it costs at worst",
        description=dedent("""\
            Measure how fast one stream is with a draft model of an eighth of the model's layers, against without:
            with one that is always right, and with one that never is. Real ones are between the two. Both are made of
            the model: its other layers are made to add nothing, which takes them as long as before."""),
        epilog="example:\n  lmwire bench draft --model ./my-model",
    )
    vision = benchmarks.add_parser(
        "vision",
        help="what images cost, and how soon a second question about one is answered",
        description=dedent("""\
            Measure 8 chats about images against mlx_vlm in one process, from the images' files to the last token, and
            how much sooner the first token of a second question about an image comes. The model is one that sees."""),
        epilog="example:\n  lmwire bench vision --model ./my-model",
    )
    http = benchmarks.add_parser(
        "http",
        help="what the HTTP server costs, against the pipe and against other servers",
        description=dedent("""\
            Measure 1, 8 and 32 streams of `lmwire serve` against the same worker's at its pipe, and against
            mlx_lm.server and mlx_vlm.server: tokens a second, and how soon the first one comes. All of them serve the
            same model, and are asked in turns; one stream, which is soon done, four times as often."""),
        epilog="example:\n  lmwire bench http --model ./my-model",
    )
    for benchmark in (pipe, generation, mixed, cache, draft, vision, http):
        benchmark.add_argument("--model", required=True, type=Path, metavar="FOLDER", help="the model's folder")
        benchmark.add_argument(
            "--tokens", type=_positive, default=256, metavar="N", help="tokens of each stream (default: 256)"
        )
        benchmark.add_argument(
            "--rounds", type=_positive, default=5, metavar="N", help="times that all is measured (default: 5)"
        )
        benchmark.add_argument("--json", action="store_true", help="JSON instead of a table")
        benchmark.set_defaults(run=_lazily("bench"))


def _add_schema(subcommands: Any) -> None:
    parser = subcommands.add_parser(
        "schema",
        help="print the protocol's JSON Schema",
        description="Print the JSON Schema of every command and event of the protocol.",
    )
    parser.add_argument(
        "--meta", action="store_true", help="print what a schema cannot hold: limits, error codes, exit codes"
    )
    parser.set_defaults(run=_lazily("schema"))


def _add_conformance(subcommands: Any) -> None:
    parser = subcommands.add_parser("conformance", help="prove a worker or a host right, in whatever language")
    sides = parser.add_subparsers(title="sides", metavar="SIDE", required=True, dest="side")
    worker = sides.add_parser(
        "worker",
        help="play every transcript of protocol/transcripts against a worker",
        description=dedent("""\
            Play the transcripts of protocol/transcripts against a worker, one process or more for each. Every line
            that it writes is held to PROTOCOL.md. Exits with 0 when all is well, with 1 when something failed."""),
        epilog="example:\n  lmwire conformance worker --model ./my-model -- ./my-worker --its-option",
    )
    worker.add_argument("--model", default="mock", metavar="PATH", help="what the worker can load (default: mock)")
    _add_kit_options(worker, "the command that runs the worker", seconds=60.0)
    host = sides.add_parser(
        "host",
        help="play the worker of a host, faults included",
        description=dedent("""\
            Drive a host through a small driver around it, and be its worker: one that does what it should, and one
            that dies, floods, babbles or does not listen. HOSTS.md, beside the kit, says what the driver must do.
            Exits with 0 when all is well, with 1 when something failed."""),
        epilog="example:\n  lmwire conformance host --only H-5 -- ./my-driver",
    )
    _add_kit_options(host, "the command that runs the driver", seconds=10.0)


def _add_kit_options(parser: argparse.ArgumentParser, program: str, *, seconds: float) -> None:
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a rule, or a case; again for more")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="known failures, a line `name: reason` each")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write JSON")
    parser.add_argument(
        "--timeout", type=float, default=seconds, metavar="S", help=f"seconds of any wait (default: {seconds:g})"
    )
    parser.add_argument("command", nargs="+", metavar="COMMAND", help=f"{program}; write -- before it")
    parser.set_defaults(run=_lazily("conformance"))


def _lazily(module: str) -> Callable[[argparse.Namespace], int]:
    def run(arguments: argparse.Namespace) -> int:
        return importlib.import_module(f"{__package__}.{module}").run(arguments)

    return run


def _json_file(path: str) -> Any:
    try:
        return json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{path}: {error}") from None


def _image(path: str) -> Any:
    try:
        return importlib.import_module("lmwire").image_part(path)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error.strerror}") from None


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number
