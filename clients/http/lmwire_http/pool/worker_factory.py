"""The processes that are started."""

import logging
from functools import partial

from lmwire import DEFAULT_COMMAND, AsyncWorker

from ..settings import Settings

_LIMIT = "--memory-limit"
_log = logging.getLogger("lmwire_http.worker")


def make_worker(settings: Settings, model: str, memory: int | None) -> AsyncWorker:
    """A worker that has not been started: this installation's own, or what the settings name. Its stderr is logged.

    Args:
        settings: With the program, and its arguments.
        model: What it is for, for the log.
        memory: What it may take, in bytes, so that it refuses what does not fit. Only this installation's own is told.
    """
    log = partial(_log.info, "%s: %s", model)
    if settings.command:
        return AsyncWorker([*settings.command, *settings.worker], on_stderr=log)
    limit = () if memory is None or _LIMIT in settings.worker else (_LIMIT, str(memory))
    command = [*DEFAULT_COMMAND, *settings.worker, *limit]
    return AsyncWorker(command, watch_host=True, on_stderr=log)
