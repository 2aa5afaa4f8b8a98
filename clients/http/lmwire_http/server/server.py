"""The server's process: its sockets, its loop, and its end."""

import asyncio
import gc
import logging
import math
import resource
import signal
import socket
from functools import partial
from types import FrameType
from typing import Any, Final, cast

import uvicorn

from lmwire.command.failures import OK

from ..app import app_of
from ..errors import ApiError
from ..http.app_state import Service, make_service
from ..settings import Settings
from ..telemetry.logs import logging_to_stderr
from .client_connection import Connection
from .sockets import UNAVAILABLE, Listening, listening

_IDLE_S: Final = 75
"""For a connection between requests: longer than clients keep theirs, or they ask on one that closes."""
_LAST_WORDS_S: Final = 5
"""For clients to read how their requests were ended."""
_OTHER_FILES: Final = 64
"""Descriptors for all but connections: sockets, workers' pipes, libraries."""
_log = logging.getLogger("lmwire_http")


def serve(settings: Settings) -> int:
    """Serves until SIGINT or SIGTERM, lets running requests end, and returns the exit code.

    Raises:
        CannotListen: there is nothing to serve on.
    """
    with listening(settings) as found, logging_to_stderr(settings.log_format, settings.api_keys):
        failure = _serve(settings, found)
    return UNAVAILABLE if failure else OK


def _serve(settings: Settings, found: Listening) -> BaseException | None:
    """Serves, and returns why it could not."""
    service = make_service(settings)
    config = uvicorn.Config(
        app_of(service),
        loop="uvloop",
        http=cast(
            Any,
            partial(
                Connection,
                patience_s=settings.patience_s,
                body_s=settings.body_s,
                limit=_connection_limit(settings.connections),
            ),
        ),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody asks who the client is
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=math.ceil(settings.drain_s) + _LAST_WORDS_S,
    )
    for warning in settings.warnings:
        _log.warning("%s", warning)
    server = _Server(config, service)
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn's own come only when it runs
        signal.signal(number, server.handle_exit)
    _log.info("lmwire serves on %s", found.where)
    gc.collect()
    gc.freeze()  # what is imported stays: a collection that went through it again would hold all streams for its time
    server.run([*found.sockets])
    return service.startup.failure


def _connection_limit(wanted: int) -> int:
    """Return as many connections as were asked for, or as the system lets this process have."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if files == resource.RLIM_INFINITY else max(1, min(wanted, files - _OTHER_FILES))


class _Server(uvicorn.Server):
    """uvicorn's, with an end that clients understand, and an exit code that says that it was in order."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends the server in order, the second at once."""
        if self.should_exit:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Whether the server is to end: also when what it was told to serve cannot be."""
        if failure := self._service.startup.failure:
            _log.error("cannot start: %s", failure, exc_info=None if isinstance(failure, ApiError) else failure)
            return True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Lets running requests end, as long as they may, and then ends them with an error of their API's."""
        drain_s = self._service.settings.drain_s
        _log.info("the server ends when running requests have, within %g s", drain_s)
        out_of_time = asyncio.get_running_loop().call_later(drain_s, self._interrupt)
        try:
            await super().shutdown(sockets)
        finally:
            out_of_time.cancel()

    def _interrupt(self) -> None:
        error = ApiError(503, "the server is ending; ask again when it is back", code="server_ending", retry_after=5)
        if count := self._service.running.interrupt(error):
            _log.warning("%d running requests were ended with the server", count)
