"""The `lmwire` command: worker, mock, serve, chat, launch, models, bundle, bench, schema, conformance."""

import sys


def main() -> int:
    """Run the command line in `sys.argv`, and return its exit code."""
    # Hosts wait for the worker's first reply, so it starts before anything is imported for the other subcommands. It
    # runs in this very process, because the host knows this process's id and holds its pipes.
    if sys.argv[1:2] == ["worker"]:
        return _run_worker()
    if sys.argv[1:2] == ["mock"]:
        return _run_worker("--mock")
    if sys.argv[1:2] == ["serve"]:
        return _run_server()
    if not sys.argv[1:]:
        return _show_next_steps()
    from lmwire_protocol.imports import uncollected

    with uncollected():
        from .arguments import parse
        from .errors import run_and_report

        arguments = parse(sys.argv[1:])
    return run_and_report(arguments.run, arguments)


def _show_next_steps() -> int:
    from .next_steps import NEXT_STEPS

    print(NEXT_STEPS, end="")
    return 0


def _run_worker(*options: str) -> int:
    from importlib import import_module

    sys.argv[:2] = ["lmwire worker", *options]
    import_module("lmwire_worker.__main__").main()
    return 0


def _run_server() -> int:
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("starlette") is None:
        problem = import_module("lmwire_protocol.extras").not_installed("starlette", "http")
        sys.exit(f"lmwire serve: {problem}")
    return import_module("lmwire_http.cli.main").main(sys.argv[2:])
