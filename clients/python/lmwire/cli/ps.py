"""`lmwire ps`: the servers and workers of this user that run now."""

import json
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from lmwire_protocol.printable import one_line

from ..errors import LmwireError
from .errors import OK, CliError
from .pull import require_worker
from .running import RunningProcess, find_running

_SHOWN: Final = 3
"""Models that are shown of those which a server has not loaded."""


def run(arguments: Namespace) -> int:
    """Print the processes as a table or as JSON, and return the exit code."""
    require_worker()
    try:
        found = find_running(arguments.api_key)
    except LmwireError as error:
        raise CliError(str(error)) from None
    if arguments.json:
        print(json.dumps([asdict(process) for process in found], indent=2))
    elif found:
        print(_table(found))
    else:
        print("No server and no worker of yours runs.")
    return OK


def _table(found: Sequence[RunningProcess]) -> str:
    rows = [("PID", "WHAT", "MODEL", "MEMORY", "REQUESTS", "UP"), *map(_row, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _row(process: RunningProcess) -> tuple[str, ...]:
    requests = process.problem or ""
    if process.running is not None and process.queued is not None:
        requests = f"{process.running} running, {process.queued} queued"
    what = f"serve {process.url or ''}".strip() if process.kind == "server" else f"worker of {process.host}"
    memory = f"{process.memory_bytes / 2**20:,.0f} MiB"
    cells = (str(process.pid), what, _models(process), memory, requests, _duration(process.started_at))
    return tuple(map(one_line, cells))


def _models(process: RunningProcess) -> str:
    """Return the models in memory, then the first of those that a request would load."""
    parts = [*process.models]
    if waiting := process.unloaded_models:
        more = f" and {len(waiting) - _SHOWN} more" if len(waiting) > _SHOWN else ""
        parts.append(f"not loaded: {', '.join(waiting[:_SHOWN])}{more}")
    return ", ".join(parts)


def _duration(started_at: float) -> str:
    seconds = max(0, int(time.time() - started_at))
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds % 60} s"
