"""Loads a model with the text engine in a process of its own, and prints what happened as JSON.

Usage: load_model.py PATH [CANCEL_STAGE CANCEL_AT]: cancels when that stage has come that far.
"""

import json
import os
import sys

from lmwire_protocol import Load, RequestError
from lmwire_worker.engine import MlxEngine
from lmwire_worker.lane import LoadCancelled


def main() -> None:
    path, *cancel = sys.argv[1:]
    progress: list[tuple[str, int, int | None, str]] = []
    told: dict[str, object] = {"replaced": False}

    def report(stage: str, current: int, total: int | None, unit: str) -> None:
        progress.append((stage, current, total, unit))
        if cancel and stage == cancel[0] and current >= int(cancel[1]):
            raise LoadCancelled

    engine = MlxEngine()
    engine.prepare()
    try:
        told["model"] = engine.open(Load(path=path), report, lambda: told.update(replaced=True)).model.path
    except RequestError as error:
        told |= {"code": error.code, "message": error.message, "retryable": error.retryable}
    except LoadCancelled:
        told["cancelled"] = True
    print(json.dumps(told | {"progress": progress}), flush=True)
    os._exit(0)  # as the worker does: a download that stands still has threads that end much later


if __name__ == "__main__":
    main()
