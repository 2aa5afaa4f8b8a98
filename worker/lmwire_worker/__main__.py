"""`python -m lmwire_worker`: a worker on this process's pipes."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .mock.plan import Plan

_USAGE = """usage: python -m lmwire_worker [--mock ...]

Reads commands as JSON Lines on stdin and writes events as JSON Lines on stdout: PROTOCOL.md describes them.

  --mock     serve an engine that needs no model library, to test hosts with; see --mock --help
  --help     show this
  --version  show the version
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
    if arguments:
        print(f"lmwire worker: unknown argument {arguments[0]!r}\n\n{_USAGE}", end="", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    _serve()


def _serve(mock: "Plan | None" = None) -> None:
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

    Process(io, Log(), TextEngine()).run()


if __name__ == "__main__":
    main()
