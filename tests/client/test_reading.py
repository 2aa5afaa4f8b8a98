"""Delivery of a worker's output: tokens several at a time, all other events at once."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from queue import SimpleQueue
from time import monotonic

import pytest

from lmwire import WorkerExited
from lmwire.transport import connection, process
from lmwire.transport.child import Spawn, spawn_process
from lmwire.transport.connection import Connection, Delivery, ShutdownTimeouts, deliver_all
from lmwire.transport.process import Process
from lmwire_protocol import Generate, Ping
from support.process.fake_worker import fake
from support.process.process_waits import wait_until_still
from support.process.worker_thread import on_thread
from support.protocol.both_clients import SECONDS


@pytest.fixture
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock, so that buffered output is never due."""
    for module in (connection, process):
        monkeypatch.setattr(module, "monotonic", lambda: 100.0)


@contextmanager
def connected(*command: str, spawn: Spawn = on_thread) -> Iterator[Connection]:
    connection = Connection(command, deliver=deliver_all, on_stderr=None, spawn=spawn)
    try:
        yield connection
    finally:
        connection.close(ShutdownTimeouts())


class Box(SimpleQueue[Delivery]):
    def events(self) -> list[str]:
        """Return the type names of the next delivery's events."""
        delivery = self.get(timeout=SECONDS)
        assert isinstance(delivery, list)
        return [type(event).__name__ for event in delivery]


def begin(connection: Connection) -> tuple[Box, Generate]:
    """Return the queue of a request that has its first token, and a command that gives it another."""
    id = connection.send(Generate(prompt="[]"), box := Box())
    word = Generate(prompt=json.dumps([{"event": "token", "id": id, "token": "la", "token_ids": [1]}]))
    connection.send(word)
    assert box.events() == ["TokenDelta"]
    return box, word


@pytest.mark.usefixtures("no_time_passes")
def test_tokens_are_delivered_together_and_before_other_events() -> None:
    with connected(*fake("PlaysItsPrompt")) as connection:
        box, word = begin(connection)
        for _ in range(3):
            connection.send(word)
        connection.send(Ping())
        assert box.events() == ["TokenDelta", "TokenDelta", "TokenDelta"]


def test_a_token_is_delivered_even_if_nothing_follows() -> None:
    with connected(*fake("PlaysItsPrompt")) as connection:
        box, word = begin(connection)
        for _ in range(3):
            connection.send(word)
            assert box.events() == ["TokenDelta"]


@pytest.mark.slow
@pytest.mark.usefixtures("no_time_passes")
def test_a_token_is_delivered_even_if_the_worker_died() -> None:
    with connected(*fake("PlaysItsPrompt"), spawn=spawn_process) as connection:
        box, word = begin(connection)
        connection.send(word)
        wait_until_still(connection.pid)
        connection.kill()
        assert box.events() == ["TokenDelta"]
        assert isinstance(box.get(timeout=SECONDS), WorkerExited)


@pytest.mark.slow
def test_buffered_output_is_delivered_when_due() -> None:
    came: list[bytes] = []
    asked, ended = threading.Event(), threading.Event()

    def read(data: bytes) -> float:
        came.append(data)
        if len(came) == 1:
            return monotonic()
        asked.set()
        return inf

    command = [sys.executable, "-c", "import sys; print('first', end='', flush=True); sys.stdin.read()"]
    child = Process(command, on_output=read, on_exit=lambda _: ended.set())
    assert asked.wait(SECONDS)
    assert came == [b"first", b""]
    child.close_stdin()
    assert ended.wait(SECONDS)
