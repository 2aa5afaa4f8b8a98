"""A client that reads slowly is waited for as long as it reads; one that does not is left."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.server import ServerState

from lmwire_http.server.client_connection import ClientConnection

PATIENCE = 60.0


class Loop:
    """Event loop with one timer at most, which the test lets run out."""

    def __init__(self) -> None:
        self.timer: Timer | None = None

    def call_later(self, seconds: float, callback: Callable[..., None], *args: Any) -> "Timer":
        assert seconds == PATIENCE
        self.timer = Timer(lambda: callback(*args))
        return self.timer


class Timer:
    def __init__(self, run_out: Callable[[], None]) -> None:
        self.run_out, self.cancelled = run_out, False

    def cancel(self) -> None:
        self.cancelled = True


class Transport(asyncio.Transport):
    """A transport with a number of bytes that the client has not read."""

    unread = 0
    aborted = False

    def get_write_buffer_size(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.aborted = True


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def transport() -> Transport:
    return Transport()


@pytest.fixture
def connection(loop: Loop, transport: Transport) -> ClientConnection:
    """One whose client has not read what it was sent."""
    config = uvicorn.Config(nothing, log_config=None, ws="none")
    config.load()
    connection = ClientConnection(
        config,
        ServerState(),
        {},
        cast(Any, loop),
        client_timeout_s=PATIENCE,
        body_timeout_s=PATIENCE,
        max_connections=1,
    )
    connection.connection_made(transport)
    transport.unread = 100_000
    connection.pause_writing()
    return connection


async def nothing(scope: object, receive: object, send: object) -> None:
    """Ignore a request."""


def run_out(loop: Loop) -> None:
    assert loop.timer
    assert not loop.timer.cancelled
    loop.timer.run_out()


@pytest.mark.usefixtures("connection")
def test_a_client_that_reads_nothing_is_disconnected(loop: Loop, transport: Transport) -> None:
    run_out(loop)
    assert transport.aborted


@pytest.mark.usefixtures("connection")
def test_a_client_that_reads_slowly_stays_connected(loop: Loop, transport: Transport) -> None:
    for unread in (99_999, 50_000, 49_000):
        transport.unread = unread
        run_out(loop)
        assert not transport.aborted
    run_out(loop)
    assert transport.aborted


def test_a_client_that_has_read_everything_is_not_timed(connection: ClientConnection, loop: Loop) -> None:
    connection.resume_writing()
    assert loop.timer
    assert loop.timer.cancelled


def test_a_client_that_has_disconnected_is_not_timed(connection: ClientConnection, loop: Loop) -> None:
    connection.connection_lost(ConnectionResetError())
    assert loop.timer
    assert loop.timer.cancelled
