"""`lmwire pull`: download a model of the hub, with its progress on stderr."""

import os
import sys
from argparse import Namespace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from lmwire_protocol import RequestError
from lmwire_protocol.extras import worker_not_installed

from .errors import INTERRUPTED, OK, CliError
from .progress import show_progress

if TYPE_CHECKING:
    from lmwire_worker.models.hub.plan import DownloadPlan


def run(arguments: Namespace) -> int:
    """Download the model, print its folder, and return the exit code."""
    require_worker()
    from lmwire_worker.models.hub.pull import pull

    try:
        with show_progress() as progress:
            folder = pull(arguments.model, progress.show, _announce, arguments.revision)
    except RequestError as error:
        raise CliError(error.message) from None
    except KeyboardInterrupt:
        print("lmwire: stopped; the same command goes on from here", file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)  # Python's own exit would wait for the download's threads
    print(folder)
    return OK


def require_worker() -> None:
    """Check that the worker's libraries are installed.

    Raises:
        CliError: They are not.
    """
    if find_spec("huggingface_hub") is None or find_spec("mlx_lm") is None:
        raise CliError(worker_not_installed())


def _announce(plan: "DownloadPlan") -> None:
    """Print the size of a model and the space for it."""
    from lmwire_worker.models.hub.plan import format_size

    def size(count: int | None) -> str:
        return "an unknown size" if count is None else format_size(count)

    line = f"{plan.hub_id}: {size(plan.total_bytes)} in {len(plan.files)} files"
    if not plan.missing:
        line += ", all of them here"
    else:
        arrived = f" ({format_size(plan.partial_bytes)} of it has arrived)" if plan.partial_bytes else ""
        line += (
            f"; {size(plan.missing_bytes)} to download{arrived}; {format_size(plan.free_bytes)} free in {plan.cache}"
        )
    print(f"lmwire: {line}", file=sys.stderr, flush=True)
