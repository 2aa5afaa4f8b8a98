"""Arguments of `lmwire bench`."""

from pathlib import Path
from textwrap import dedent
from typing import Final, NamedTuple

from lmwire_protocol.command_line import Flag

from ..option_sources import SourcedParser
from .parser import Subcommands, positive, run_later


class _Benchmark(NamedTuple):
    """A benchmark in the help."""

    name: str
    help: str
    description: str
    example_options: str = ""
    needs_model: bool = True
    tokens: int = 256
    """Default length of each stream."""


_BENCHMARKS: Final = (
    _Benchmark(
        "pipe",
        "cost of the pipe, against the model library in one process",
        """\
        Measure the cost of the worker and its pipe: streams against mlx_lm in one process, mixed samplers against
        greedy, starting, cancelling, and the event path alone. Both sides of a ratio are measured in turns, so that a
        busy machine slows both. One stream is quick, and is measured four times as often. Takes some minutes. The
        smaller the model, the harder the test.""",
        " --json",
    ),
    _Benchmark(
        "generation",
        "cost of JSON with a schema and of log-probabilities, against plain tokens",
        """\
        Measure the cost of requests that ask for more than plain tokens: streams of JSON with a schema, and streams
        with log-probabilities, against plain ones of the same worker, in turns. The smaller the model and the larger
        its vocabulary, the harder the test.""",
    ),
    _Benchmark(
        "mixed",
        "cost of long prompts and long answers for the short streams beside them",
        """\
        Measure the speed of short streams beside one of 8,192 tokens. Measure how long running streams wait for a
        token while a prompt of 16,384 tokens is prefilled, and how much later its own first token comes. The model's
        context length is set so that it holds that.""",
    ),
    _Benchmark(
        "cache",
        "time to the first token of a cached prompt",
        """\
        Measure how much sooner the first token of a prompt of 4,096 tokens comes when it is cached, in memory or on
        disk by an earlier worker. Measure the cost of a prompt that is not among 1,000 cached ones. The model's
        context length is set so that it holds that. Files that were just written come from the system's own cache.""",
    ),
    _Benchmark(
        "draft",
        "speed with drafts, at best and at worst",
        """\
        Measure one stream with a draft model of an eighth of the model's layers, against one without: with a draft
        model that is always right, and with one that never is. Real draft models are between the two. Both are made
        from the model: its other layers are changed to add nothing, which takes as long as before. Measure also
        proposals from the text itself, builtin:ngram, with a text that repeats itself and one that does not.""",
    ),
    _Benchmark(
        "vision",
        "cost of images, and time to a second answer about one",
        """\
        Measure 8 chats about images against mlx_vlm in one process, from the image files to the last token. Measure
        how much sooner the first token of a second question about an image comes. The model must accept images.""",
    ),
    _Benchmark(
        "http",
        "cost of the HTTP server, against the pipe and against other servers",
        """\
        Measure 1, 8 and 32 streams of `lmwire serve` against the same worker at its pipe, and against mlx_lm.server
        and mlx_vlm.server: tokens a second, and the time to the first token. All of them serve the same model in
        turns. 1 and 8 streams are quick, and are measured four times as often against the other servers.""",
    ),
    _Benchmark(
        "agents",
        "speed of requests that share long beginnings, against other servers",
        """\
        Measure `lmwire serve` against mlx_lm.server and mlx_vlm.server with 8 agents of one system prompt that take 4
        turns each, with 1 agent that has a history of 8 times that length, and with 32 questions at once about a
        document of twice that length: the time in all, the time to the first token of the first turn and of later ones,
        and the tokens computed against the fewest possible. All of them serve the same model in turns.""",
        tokens=64,
    ),
    _Benchmark(
        "hosts",
        "speed of the clients in C, Go, Rust and Node, against the one in Python",
        """\
        Measure the events a second that each client delivers from 32 streams, and the time from the spawn of a worker
        to the first token. Each is compared with the Python client in turns. The worker replays recorded lines, so
        that the client is what is measured. The programs are built from a checkout of lmwire, with go, cargo and npm
        where they are installed.""",
        needs_model=False,
        tokens=8192,
    ),
    _Benchmark(
        "ranks",
        "speed and memory of a model that is split over processes",
        """\
        Measure 1, 8 and 32 streams, the first token of a prompt of 4,096 tokens and the memory of each process, of a
        model that is split over several processes (`lmwire worker --ranks`), against the same model in one, and against
        mlx_lm in a plain loop over as many processes. Each number of processes is measured in turns. Streams count
        while all of them are decoded. Measure also the exchanges of a step alone, and what the split costs a step of
        the built-in model, whose own work is small.""",
        " --ranks 2",
    ),
    _Benchmark(
        "start",
        "time of the first commands, against the imports and the load that they need",
        """\
        Measure how long `lmwire --help` takes against `import msgspec`, and `lmwire chat -p hi` with the built-in model
        against mlx_lm.load of that model: whole processes, in turns. Measure the processor time and the time from the
        spawn of a worker to its first token against `import mlx_lm`, and the worker's memory.""",
        needs_model=False,
        tokens=32,
    ),
)


def add_bench(subcommands: Subcommands) -> None:
    """Add the subcommand, with one of its own for each benchmark."""
    parser = subcommands.add_parser("bench", help="measure the worker on this machine")
    benchmarks = parser.add_subparsers(title="benchmarks", metavar="BENCHMARK", required=True, dest="benchmark")
    for benchmark in _BENCHMARKS:
        model = " --model ./my-model" if benchmark.needs_model else ""
        example = f"lmwire bench {benchmark.name}{model}{benchmark.example_options}"
        _add_options(
            benchmarks.add_parser(
                benchmark.name,
                help=benchmark.help,
                description=dedent(benchmark.description),
                epilog=f"example:\n  {example}",
            ),
            benchmark,
        )
    _add_plot(
        benchmarks.add_parser(
            "plot",
            help="plot results that were written before",
            description="Plot the results of earlier runs in the terminal, and into a PNG file.",
            epilog="example:\n  lmwire bench pipe --model ./my-model --json > pipe.json\n"
            "  lmwire bench plot pipe.json --plot pipe.png",
        )
    )
    _add_compare(
        benchmarks.add_parser(
            "compare",
            help="compare two results that were written before",
            description="Compare two results of the same benchmark, figure by figure. A figure is better or worse if "
            "the middle halves of its rounds lie apart.",
            epilog="example:\n  lmwire bench compare docs/benchmarks/0.2.0/my-machine/pipe.json pipe.json",
        )
    )


def _add_options(parser: SourcedParser, benchmark: _Benchmark) -> None:
    if benchmark.needs_model:
        parser.add_argument("--model", required=True, type=Path, metavar="FOLDER", help="the model folder")
    else:
        parser.set_defaults(model=None)
    parser.add_argument(
        "--tokens",
        type=positive,
        default=benchmark.tokens,
        metavar="N",
        help=f"length of each stream, in tokens (default: {benchmark.tokens})",
    )
    parser.add_argument(
        "--rounds", type=positive, default=5, metavar="N", help="how often everything is measured (default: 5)"
    )
    if benchmark.name == "ranks":
        parser.add_argument(
            "--ranks",
            type=positive,
            nargs="+",
            default=[2],
            metavar="N",
            help="numbers of processes to measure besides one (default: 2)",
        )
    if benchmark.name == "agents":
        parser.add_argument(
            "--shared-tokens",
            type=positive,
            default=2048,
            metavar="N",
            help="length of the agents' system prompt, in tokens (default: 2048)",
        )
    parser.add_argument("--json", action=Flag, help="print JSON instead of a table")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="plot the results: a PNG file, and in the terminal")
    parser.add_argument(
        "--save", type=Path, metavar="FOLDER", help="write JSON into a folder of results, by version and machine, too"
    )
    parser.set_defaults(run=run_later("bench"))


def _add_plot(parser: SourcedParser) -> None:
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULTS", help="files of `lmwire bench … --json`")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a PNG file, too")
    parser.set_defaults(run=run_later("bench.plotting"))


def _add_compare(parser: SourcedParser) -> None:
    parser.add_argument("before", type=Path, metavar="BEFORE", help="a file of `lmwire bench … --json`")
    parser.add_argument("after", type=Path, metavar="AFTER", help="a later one")
    parser.set_defaults(run=run_later("bench.comparison"))
