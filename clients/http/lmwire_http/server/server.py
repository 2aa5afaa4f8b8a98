"""The server process: uvicorn with lmwire's sockets, connections and shutdown."""

import asyncio
import gc
import logging
import math
import os
import resource
import signal
import socket
import threading
from functools import partial
from types import FrameType
from typing import Any, Final, cast

import uvicorn

from ..app import make_app_with_state
from ..errors import ApiError
from ..http.context import AppState, make_app_state
from ..pool.status import ShowProgress, log_downloads
from ..settings import Settings
from ..telemetry.logs import MakeProgressArea, StderrWriter, log_to_stderr
from .client_connection import ClientConnection
from .sockets import ListeningSockets, listen

_IDLE_TIMEOUT_S: Final = 75
"""Time before an idle connection is closed, in seconds. It is longer than that of clients, which must close first."""
FINAL_ERRORS_S: Final = 5
"""Time for clients to read the errors that end their requests at shutdown, in seconds."""
_RESERVED_FILES: Final = 64
"""File descriptors for everything except connections: sockets, pipes to workers, libraries."""
_STDIN_CHUNK_BYTES: Final = 4096
_log = logging.getLogger("lmwire_http")


def serve(settings: Settings, make_progress_area: MakeProgressArea | None = None) -> int:
    """Serve until SIGINT or SIGTERM, let running requests finish, and return the exit code.

    Args:
        settings: The server's settings.
        make_progress_area: Makes the area of a terminal that shows progress below the log; None if nothing does.

    Raises:
        CannotListen: The address is invalid or taken, or would let anyone in.
    """
    with (
        listen(settings) as found,
        StderrWriter(make_progress_area if settings.log_format == "text" else None) as writer,
        log_to_stderr(writer, settings.log_format, settings.api_keys, settings.log_level),
    ):
        failure = _serve(settings, found, writer.draw_progress if writer.can_draw else log_downloads)
    return os.EX_UNAVAILABLE if failure else os.EX_OK


def _serve(settings: Settings, found: ListeningSockets, show_progress: ShowProgress) -> BaseException | None:
    """Serve, and return the error that made it impossible; None after an orderly shutdown."""
    state = make_app_state(settings, show_progress)
    server = make_server(state)
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn installs its handlers only after the start
        signal.signal(number, server.handle_exit)
    _log.info("lmwire serves on %s", found.address)
    gc.collect()
    gc.freeze()  # imported modules stay in memory: a collection that scans them would pause all streams
    server.run([*found.sockets])
    return state.startup.failure


def make_server(state: AppState) -> uvicorn.Server:
    """Return a server that is not running. It serves on the sockets that its `run` gets, in any thread.

    Args:
        state: The parts of the server.
    """
    settings = state.settings
    for warning in settings.warnings:
        _log.warning("%s", warning)
    config = uvicorn.Config(
        make_app_with_state(state),
        loop="uvloop",
        http=cast(
            Any,
            partial(
                ClientConnection,
                client_timeout_s=settings.client_timeout_s,
                body_timeout_s=settings.body_timeout_s,
                max_connections=_connection_limit(settings.max_connections),
            ),
        ),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # a client must not choose its own address
        timeout_keep_alive=_IDLE_TIMEOUT_S,
        timeout_graceful_shutdown=math.ceil(settings.drain_s) + FINAL_ERRORS_S,
    )
    return _Server(config, state)


def _connection_limit(wanted: int) -> int:
    """Return the wanted number of connections, or what this process's file descriptors allow."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if files == resource.RLIM_INFINITY else max(1, min(wanted, files - _RESERVED_FILES))


class _Server(uvicorn.Server):
    """uvicorn's server, with errors in the API's format at shutdown and exit code 0 after an orderly end."""

    def __init__(self, config: uvicorn.Config, state: AppState) -> None:
        super().__init__(config)
        self._state = state
        if state.settings.stop_at_eof:
            threading.Thread(target=self._stop_at_eof, daemon=True).start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop the server in order at the first signal, and at once at the second."""
        if self.should_exit:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        self.should_exit = True

    def _stop_at_eof(self) -> None:
        """Stop the server in order when stdin ends."""
        while os.read(0, _STDIN_CHUNK_BYTES):
            pass
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Return whether the server must stop: after a signal, or because its models cannot be served."""
        if failure := self._state.startup.failure:
            _log.error("cannot start: %s", failure, exc_info=None if isinstance(failure, ApiError) else failure)
            return True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let running requests finish within the drain time, then end them with an error."""
        drain_s = self._state.settings.drain_s
        _log.info("the server stops after its running requests, within %g s", drain_s)
        drain_timer = asyncio.get_running_loop().call_later(drain_s, self._interrupt_requests)
        try:
            await super().shutdown(sockets)
        finally:
            drain_timer.cancel()

    def _interrupt_requests(self) -> None:
        error = ApiError(503, "the server is stopping; retry when it is back", code="server_ending", retry_after=5)
        if count := self._state.in_flight.interrupt_all(error):
            _log.warning("%d running requests were ended with the server", count)
