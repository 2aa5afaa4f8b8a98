"""The server that an agent gets: whose it may be, and who receives the API key."""

import json
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from lmwire.cli import local_servers
from lmwire.cli.errors import CliError
from lmwire.cli.launch import server as launch_server
from lmwire.cli.launch.server import LONGEST_NAME, find_server

KEY = "a-secret-key-of-32-characters-000"


class Listening(ThreadingHTTPServer):
    """A server of this process that lists one model, and writes down each path with the key that came."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, str | None]] = []
        self.model = "ada/one"
        self.ready: object = {"ready": False}

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Listening  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        """Answer, and write the request down."""
        self.server.seen.append((self.path, self.headers["authorization"]))
        models = {"data": [{"id": self.server.model, "context_length": 4096}]}
        self.send_response(503 if self.path == "/ready" else 200)
        self.end_headers()
        self.wfile.write(json.dumps(self.server.ready if self.path == "/ready" else models).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@pytest.fixture
def default(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listening]:
    """A program of this user at the default address."""
    with Listening() as listening:
        monkeypatch.setattr(launch_server, "DEFAULT_URL", listening.url)
        thread = Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield listening
        listening.shutdown()
        thread.join()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of the servers that are started. They all are one at another address."""
    keys: list[str] = []

    @contextmanager
    def start(model: str, api_key: str) -> Generator[str]:
        keys.append(api_key)
        with Listening() as listening:
            thread = Thread(target=listening.serve_forever, daemon=True)
            thread.start()
            yield listening.url
            assert listening.seen == [("/v1/models", f"Bearer {api_key}")]
            listening.shutdown()
            thread.join()

    monkeypatch.setattr(launch_server, "start_server", start)
    return keys


def give_to(uid: int, listening: Listening, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system say that another user's socket is at an address."""
    table = folder / "tcp"
    word = int.from_bytes(b"\x7f\0\0\1", sys.byteorder)
    table.write_text(f"head\n0: {word:08X}:{listening.server_port:04X} 0:0 0A 0 0 0 {uid} 0 1")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(local_servers, "_TABLES", (str(table),))


def test_a_strangers_program_gets_no_request_and_another_server_is_started(
    default: Listening,
    started: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    give_to(os.geteuid() + 1, default, tmp_path, monkeypatch)
    with find_server(None, KEY, "ada/one") as server:
        assert server.url != default.url
    assert default.seen == []
    assert f"another user's program listens at {default.url}" in capsys.readouterr().err
    with pytest.raises(CliError, match="no server of yours runs at"), find_server(None, KEY, None):
        pass


def test_a_server_that_is_started_gets_a_key_of_its_own(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_server, "listener_of", lambda _: "nobody")
    for _ in range(2):
        with find_server(None, KEY, "ada/one") as server:
            assert server.needs_key and server.api_key == started[-1]
    assert len({KEY, *started}) == 3


def test_the_users_own_server_is_asked_for_its_kind_without_the_key(default: Listening) -> None:
    with find_server(None, KEY, None) as server:
        assert (server.url, server.model.id) == (default.url, "ada/one")
    assert default.seen == [("/ready", None), ("/v1/models", f"Bearer {KEY}")]


def test_another_program_of_the_user_gets_no_key(default: Listening, started: list[str]) -> None:
    default.ready = {"status": "ok"}
    with find_server(None, KEY, "ada/one") as server:
        assert server.url != default.url
    assert default.seen == [("/ready", None)]


def test_a_server_that_the_user_names_is_used_whoever_runs_it(
    default: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_to(os.geteuid() + 1, default, tmp_path, monkeypatch)
    with find_server(default.url, KEY, None) as server:
        assert server.url == default.url


@pytest.mark.parametrize("name", ["a\x1b]0;b\x07", "a\x9b2J", "a\nb", "a\u202eb", "x" * (LONGEST_NAME + 1)])
def test_a_name_that_a_terminal_would_obey_reaches_no_agent(default: Listening, name: str) -> None:
    default.model = name
    with pytest.raises(CliError, match="a name that none has") as raised, find_server(None, None, None):
        pass
    assert str(raised.value).isprintable()
