"""How often the pipe is read: where much comes in little pieces, not for each piece."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import pytest

from client_faces import SECONDS
from fake_worker import fake
from lmwire import process
from lmwire.connection import Connection, Delivery, Patience, put
from lmwire.process import Process
from lmwire_protocol import Generate, Ping


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long reading rested, each time. It does not really."""
    rests: list[float] = []
    monkeypatch.setattr(process, "sleep", rests.append)
    return rests


@contextmanager
def connected(*command: str) -> Iterator[Connection]:
    connection = Connection(command, deliver=put, on_stderr=None)
    try:
        yield connection
    finally:
        connection.close(Patience())


class Box(SimpleQueue[Delivery]):
    def events(self) -> list[str]:
        """The names of those that came next."""
        delivery = self.get(timeout=SECONDS)
        assert isinstance(delivery, list)
        return [type(event).__name__ for event in delivery]


def sing(connection: Connection, count: int, *, silent: int = 0) -> None:
    """Has so many requests answered at once, beside others that wait, and reads once more."""
    boxes = [Box() for _ in range(count)]
    for box in boxes:
        connection.send(Generate(prompt="sing"), box)
    for _ in range(silent):
        connection.send(Generate(prompt="wait"), Box())
    assert [box.events() for box in boxes] == count * [["Piece"]]
    read_once_more(connection)


def read_once_more(connection: Connection) -> None:
    connection.send(Ping(), pinged := Box())
    assert pinged.events() == ["PingDone"]


@pytest.mark.parametrize("requests", [4, 32])
def test_tokens_of_many_requests_are_read_together(requests: int, rests: list[float]) -> None:
    with connected(*fake("InChorus", str(requests))) as connection:
        sing(connection, requests)
        assert rests == [0.03]


@pytest.mark.parametrize(("requests", "seconds"), [(4, 0.005), (8, 0.01), (16, 0.02), (32, 0.02)])
def test_while_a_first_token_is_waited_for_they_are_read_sooner(
    requests: int, seconds: float, rests: list[float]
) -> None:
    with connected(*fake("InChorus", str(requests), "1")) as connection:
        sing(connection, requests, silent=1)
        assert rests == [seconds]


@pytest.mark.parametrize(("max_tokens", "expected"), [(3, []), (1_000_000, [0.03])])
def test_an_end_that_max_tokens_foretells_is_read_in_time(
    max_tokens: int, expected: list[float], rests: list[float]
) -> None:
    with connected(*fake("PlaysItsPrompt")) as connection:
        boxes = [Box() for _ in range(4)]
        ids = [connection.send(Generate(prompt="[]", max_tokens=max_tokens), box) for box in boxes]
        chord = json.dumps([{"event": "token", "id": id, "token": "la", "token_ids": [1]} for id in ids])
        for _ in range(2):
            connection.send(Generate(prompt=chord))
            assert [box.events() for box in boxes] == 4 * [["Piece"]]
        read_once_more(connection)
        assert rests == expected


def test_tokens_of_a_few_are_read_as_they_come(rests: list[float]) -> None:
    with connected(*fake("InChorus", "3")) as connection:
        sing(connection, 3)
        assert rests == []


def test_what_is_no_token_is_read_as_it_comes(rests: list[float]) -> None:
    with connected(*fake("Good")) as connection:
        for _ in range(8):
            connection.send(Ping(), box := Box())
            assert box.events() == ["PingDone"]
        assert rests == []


WRITER = """
import sys
sys.stdout.write("first")
sys.stdout.flush()
open(sys.argv[2]).read()
sys.stdout.write("x" * int(sys.argv[1]))
sys.stdout.flush()
open(sys.argv[2], "w").close()
sys.stdin.read()
"""


@pytest.mark.parametrize(("size", "rested"), [(32 * 1024, 2), (32 * 1024 + 1, 1)])
def test_a_pipe_that_may_soon_be_full_is_read_on(size: int, rested: int, rests: list[float], tmp_path: Path) -> None:
    os.mkfifo(turn := tmp_path / "turn")
    sizes: list[int] = []
    came, ended = threading.Event(), threading.Event()

    def read(data: bytes) -> float:
        sizes.append(len(data))
        if len(sizes) == 1:
            turn.write_bytes(b"")  # the child's
            turn.read_bytes()  # ours again: all the rest is in the pipe
        else:
            came.set()
        return 0.01

    command = [sys.executable, "-c", WRITER, str(size), str(turn)]
    child = Process(command, on_output=read, on_exit=lambda _: ended.set())
    assert came.wait(SECONDS)
    child.close_stdin()
    assert ended.wait(SECONDS)
    assert sizes == [len("first"), size]
    assert len(rests) == rested


def test_the_end_of_a_worker_is_told_though_reading_rests() -> None:
    with connected(*fake("InChorus", "4")) as connection:
        boxes = [Box() for _ in range(4)]
        for box in boxes:
            connection.send(Generate(prompt="sing"), box)
        assert [box.events() for box in boxes] == 4 * [["Piece"]]
        connection.kill()
        assert connection.lost is not None
        assert all(box.get(timeout=SECONDS) for box in boxes)
