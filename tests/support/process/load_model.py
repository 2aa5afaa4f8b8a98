"""Loads models with the text engine in a process of its own, which costs more to start than most loads do.

Each line that it reads is a job as JSON: `path`, and `cancel`, a stage and how far it comes before the load is
cancelled, or null, and whether the model's code is trusted. It prints what happened as a line of JSON.
"""

import json
import os
import sys
from typing import Any

from lmwire_protocol import Load, RequestError
from lmwire_worker.engine.interface import LoadCancelled
from lmwire_worker.loading.model_loader import MlxModelLoader


def load(path: str, cancel: tuple[str, int] | None, *, trusted: bool) -> dict[str, Any]:
    """What an engine of its own makes of it."""
    progress: list[tuple[str, int, int | None, str]] = []
    told: dict[str, Any] = {"replaced": False, "progress": progress}

    def report(stage: str, current: int, total: int | None, unit: str) -> None:
        progress.append((stage, current, total, unit))
        if cancel and stage == cancel[0] and current >= cancel[1]:
            raise LoadCancelled

    engine = MlxModelLoader()
    engine.prepare()
    try:
        request = Load(path=path, trust_remote_code=trusted)
        told["model"] = engine.open(request, report, lambda: told.update(replaced=True)).model.path
    except RequestError as error:
        told |= {"code": error.code, "message": error.message, "retryable": error.retryable}
    except LoadCancelled:
        told["cancelled"] = True
    return told


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(load(**json.loads(line))), flush=True)
    os._exit(0)  # as the worker does: a download that stands still has threads that end much later
