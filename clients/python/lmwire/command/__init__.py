"""The `lmwire` command: a worker, a chat, the models at hand, a benchmark and the protocol's schema."""

import sys


def main() -> int:
    """Runs the command line in `sys.argv` and returns its exit code."""
    # Hosts wait for the worker's first answer, so it starts before anything is imported for the other subcommands,
    # and in this very process: its pid and its pipes are those that the host sees.
    if sys.argv[1:2] == ["worker"]:
        return _worker()
    if sys.argv[1:2] == ["mock"]:
        return _worker("--mock")
    if sys.argv[1:2] == ["serve"]:
        return _serve()
    from .arguments import parse
    from .failures import reported

    arguments = parse(sys.argv[1:])
    return reported(arguments.run, arguments)


def _worker(*options: str) -> int:
    from importlib import import_module

    sys.argv[:2] = ["lmwire worker", *options]
    import_module("lmwire_worker.__main__").main()
    return 0


def _serve() -> int:
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("starlette") is None:
        sys.exit("lmwire serve: what it serves with is not installed: pip install 'lmwire[http]'")
    return import_module("lmwire_http.cli.main").main(sys.argv[2:])
