"""A process that loads models, many in a row, since its start costs more than most loads do.

Each input line is a job as JSON. `path` is the model's. `cancel` is the stage and the progress at which the load is
cancelled, or null. `trusted` allows the model's own code. The outcome of each job is printed as a line of JSON.
"""

import json
import os
import sys
from typing import Any

from lmwire_protocol import Load, RequestError
from lmwire_worker.engine.interface import LoadCancelled
from lmwire_worker.loading.model_loader import MlxModelLoader


def load(path: str, cancel: tuple[str, int] | None, *, trusted: bool) -> dict[str, Any]:
    """Load a model with a new loader, and return the outcome."""
    progress: list[tuple[str, int, int | None, str]] = []
    outcome: dict[str, Any] = {"replaced": False, "progress": progress}

    def report(stage: str, current: int, total: int | None, unit: str) -> None:
        progress.append((stage, current, total, unit))
        if cancel and stage == cancel[0] and current >= cancel[1]:
            raise LoadCancelled

    engine = MlxModelLoader()
    engine.prepare()
    try:
        request = Load(path=path, trust_remote_code=trusted)
        outcome["model"] = engine.open(request, report, lambda: outcome.update(replaced=True)).model.path
    except RequestError as error:
        outcome |= {"code": error.code, "message": error.message, "retryable": error.retryable}
    except LoadCancelled:
        outcome["cancelled"] = True
    return outcome


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(load(**json.loads(line))), flush=True)
    os._exit(0)  # as the worker does: the threads of a stalled download would end much later
