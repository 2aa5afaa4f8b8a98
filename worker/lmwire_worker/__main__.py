"""`python -m lmwire_worker`: a worker on this process's pipes."""

import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from .mock.plan import Plan

_USAGE = """usage: python -m lmwire_worker [--memory-limit BYTES | --mock ...]

Reads commands as JSON Lines on stdin and writes events as JSON Lines on stdout: PROTOCOL.md describes them.

  --memory-limit BYTES  what a model, its caches and its requests may take together;
                        nine tenths of the device's memory by default
  --mock                serve an engine that needs no model library, to test hosts with; see --mock --help
  --help                show this
  --version             show the version
"""

EXIT_USAGE = 64
EXIT_STDOUT = 74


def main(arguments: list[str] | None = None) -> None:
    """Runs a worker; does not return."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments in (["--help"], ["-h"]):
        print(_USAGE, end="")
        sys.exit(0)
    if arguments == ["--version"]:
        from lmwire_protocol import __version__

        print(f"lmwire {__version__}")
        sys.exit(0)
    if arguments[:1] == ["--mock"]:
        from .mock.plan import plan

        _serve(plan(arguments[1:]))
    if arguments[:1] == ["--memory-limit"]:
        _serve(memory_limit=_read_limit(arguments[1:]))
    if arguments:
        _refuse(f"unknown argument {arguments[0]!r}")
    _serve()


def _read_limit(values: list[str]) -> int:
    if len(values) != 1 or not (values[0].isascii() and values[0].isdigit() and int(values[0]) > 0):
        _refuse("--memory-limit needs one number of bytes, above 0, and nothing behind it")
    return int(values[0])


def _refuse(problem: str) -> NoReturn:
    print(f"lmwire worker: {problem}\n\n{_USAGE}", end="", file=sys.stderr)
    sys.exit(EXIT_USAGE)


def _serve(mock: "Plan | None" = None, memory_limit: int | None = None) -> None:
    from . import pipes  # before anything that could print
    from .log import Log

    try:
        io = pipes.take_over()
    except OSError:
        sys.exit(EXIT_STDOUT)
    from .process import Process

    if mock:
        Process(mock.around(io), Log(), mock.engine).run()
    from .text import TextEngine

    Process(io, Log(), TextEngine(memory_limit)).run()


if __name__ == "__main__":
    main()
