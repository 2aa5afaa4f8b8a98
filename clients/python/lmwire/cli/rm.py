"""`lmwire rm`: remove a downloaded model."""

import subprocess
import sys
from argparse import Namespace

import msgspec

from lmwire_protocol.command_line import format_size

from ..child_process import child_environment, python_command
from .errors import OK, USAGE, CliError
from .pull import require_worker


class _CachedModel(msgspec.Struct):
    """The report of the worker's program."""

    hub_id: str = ""
    size_bytes: int = 0
    """Size of the files that only this model has, in bytes."""
    users: list[int] = []
    """Process ids of the workers that have loaded it."""
    problem: str | None = None
    """The reason why it cannot be removed."""


def run(arguments: Namespace) -> int:
    """Remove the model, print how much space that frees, and return the exit code."""
    require_worker()
    command = python_command("lmwire_worker.models.hub.removal", arguments.model)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=child_environment()) as process:
        model = _read(process)
        _check_unused(model)
        if not (arguments.yes or _is_confirmed(f"Remove {model.hub_id} ({format_size(model.size_bytes)})?")):
            return OK
        assert process.stdin
        process.stdin.write(b"remove\n")
        process.stdin.flush()
        _read(process)
    print(f"{model.hub_id} is removed: {format_size(model.size_bytes)} freed")
    return OK


def _read(process: "subprocess.Popen[bytes]") -> _CachedModel:
    assert process.stdout
    try:
        model = msgspec.json.decode(process.stdout.readline(), type=_CachedModel)
    except msgspec.DecodeError:
        raise CliError("the cache of models cannot be read") from None  # the program has written why
    if model.problem is not None:
        raise CliError(model.problem)
    return model


def _check_unused(model: _CachedModel) -> None:
    if model.users:
        pids = " and ".join(map(str, model.users))
        raise CliError(f"{model.hub_id} is loaded by the worker with process id {pids}; stop that first")


def _is_confirmed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise CliError("rm asks before it removes a model, and stdin is not a terminal: add --yes", USAGE)
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
