"""Creation of worker processes."""

import logging
from functools import partial

from lmwire import DEFAULT_COMMAND, AsyncWorker

from ..settings import Settings

_LIMIT = "--memory-limit"
_log = logging.getLogger("lmwire_http.worker")


def make_worker(settings: Settings, model: str, memory: int | None) -> AsyncWorker:
    """Return a worker that has not been started. Its stderr goes to the log.

    Args:
        settings: The server's settings, with the worker's command and arguments.
        model: The model's name, for the log.
        memory: The worker's memory limit in bytes; None for none. Custom worker commands do not receive it.
    """
    log = partial(_log.info, "%s: %s", model)
    if settings.worker_command:
        return AsyncWorker([*settings.worker_command, *settings.worker_args], on_stderr=log)
    limit = () if memory is None or _LIMIT in settings.worker_args else (_LIMIT, str(memory))
    command = [*DEFAULT_COMMAND, *settings.worker_args, *limit]
    return AsyncWorker(command, watch_host=True, on_stderr=log)
