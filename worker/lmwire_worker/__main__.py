"""`python -m lmwire_worker`: a worker on this process's pipes."""

import itertools
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from .log import Log
    from .mock.plan import Plan
    from .text.disk_settings import DiskSettings

_USAGE = """usage: python -m lmwire_worker [--memory-limit BYTES] [--cache-dir DIR [--cache-disk-bytes BYTES]]
       python -m lmwire_worker --mock ...

Reads commands as JSON Lines on stdin and writes events as JSON Lines on stdout: PROTOCOL.md describes them.

  --memory-limit BYTES  what a model, its caches and its requests may take together;
                        nine tenths of the device's memory by default
  --cache-dir DIR       keep what was computed of prompts and answers here as well, for the next worker;
                        nothing is kept on disk by default. The files tell whoever reads them what was said
  --cache-disk-bytes BYTES
                        what they may take; 16 GiB by default. The least recently used go first
  --mock                serve an engine that needs no model library, to test hosts with; see --mock --help
  --help                show this
  --version             show the version
"""

_OPTIONS = ("--memory-limit", "--cache-dir", "--cache-disk-bytes")

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
    _serve(options=_read_options(arguments))


def _read_options(arguments: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in itertools.zip_longest(arguments[::2], arguments[1::2], fillvalue=""):
        if name not in _OPTIONS:
            _refuse(f"unknown argument {name!r}")
        if name in options:
            _refuse(f"{name} is given twice")
        if name == "--cache-dir" and not value:
            _refuse(f"{name} needs a directory")
        if name != "--cache-dir" and not (value.isascii() and value.isdigit() and int(value) > 0):
            _refuse(f"{name} needs a number of bytes, above 0")
        options[name] = value
    if "--cache-disk-bytes" in options and "--cache-dir" not in options:
        _refuse("--cache-disk-bytes needs a --cache-dir")
    return options


def _refuse(problem: str) -> NoReturn:
    print(f"lmwire worker: {problem}\n\n{_USAGE}", end="", file=sys.stderr)
    sys.exit(EXIT_USAGE)


def _serve(mock: "Plan | None" = None, options: dict[str, str] | None = None) -> None:
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

    Process(io, log := Log(), TextEngine(*_settings(options or {}, log))).run()


def _settings(options: dict[str, str], log: "Log") -> "tuple[int | None, DiskSettings | None]":
    from pathlib import Path

    from .text.disk_settings import DEFAULT_DISK_BYTES, DiskSettings

    limit = int(options["--memory-limit"]) if "--memory-limit" in options else None
    if "--cache-dir" not in options:
        return limit, None
    directory = Path(options["--cache-dir"]).expanduser().absolute()
    return limit, DiskSettings(directory, int(options.get("--cache-disk-bytes", DEFAULT_DISK_BYTES)), log)


if __name__ == "__main__":
    main()
