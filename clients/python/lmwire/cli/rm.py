"""`lmwire rm`: remove a downloaded model."""

import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from lmwire_protocol import RequestError

from .errors import OK, USAGE, CliError
from .pull import require_worker

if TYPE_CHECKING:
    from lmwire_worker.models.hub.removal import CachedModel


def run(arguments: Namespace) -> int:
    """Remove the model, print how much space that frees, and return the exit code."""
    require_worker()
    from lmwire_worker.models.hub.plan import format_size
    from lmwire_worker.models.hub.removal import find_cached, remove

    try:
        model = find_cached(arguments.model)
        _check_unused(model)
        if not (arguments.yes or _is_confirmed(f"Remove {model.hub_id} ({format_size(model.size_bytes)})?")):
            return OK
        remove(model)
    except RequestError as error:
        raise CliError(error.message) from None
    except OSError as error:
        raise CliError(f"{arguments.model} cannot be removed: {error}") from None
    print(f"{model.hub_id} is removed: {format_size(model.size_bytes)} freed")
    return OK


def _check_unused(model: "CachedModel") -> None:
    if model.users:
        pids = " and ".join(str(user.pid) for user in model.users)
        raise CliError(f"{model.hub_id} is loaded by the worker with process id {pids}; stop that first")


def _is_confirmed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise CliError("rm asks before it removes a model, and stdin is not a terminal: add --yes", USAGE)
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
