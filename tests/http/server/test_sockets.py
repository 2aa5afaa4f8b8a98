"""Addresses of the server: this machine by default, checked before any worker starts."""

import errno
import os
import signal
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from lmwire_http.server.sockets import CannotListen, listen
from lmwire_http.settings import Settings
from support.http.http_server import MOCK, served_process
from support.http.raw_http import asked
from support.process.lmwire_command import lmwire

USAGE = 64
UNAVAILABLE = 69


def refusal(code: int, **settings: object) -> str:
    with pytest.raises(CannotListen) as refused, listen(Settings(**settings)):  # type: ignore[arg-type]
        pass
    assert refused.value.exit_code == code
    return str(refused.value)


def test_by_default_only_this_machine_can_connect() -> None:
    with listen(Settings(port=0)) as found:
        assert [each.getsockname()[0] for each in found.sockets] == ["127.0.0.1"]
        assert found.address == f"http://127.0.0.1:{found.sockets[0].getsockname()[1]}"


def test_a_name_is_all_its_addresses_at_one_port() -> None:
    with listen(Settings(host="localhost", port=0)) as found:
        assert len({each.getsockname()[1] for each in found.sockets}) == 1
        assert "127.0.0.1" in [each.getsockname()[0] for each in found.sockets]
        assert found.address.startswith("http://localhost:")


def test_a_free_port_is_free_at_all_addresses_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection of any program takes a port at one address, and the system chooses one that is free at another."""
    addresses = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "other")]
    monkeypatch.setattr("lmwire_http.server.sockets._resolve", lambda *_: addresses)
    create, tried = socket.create_server, list[int]()

    def create_server(address: tuple[str, int], **options: Any) -> socket.socket:
        if address[0] != "other":
            return create(address, **options)
        tried.append(address[1])
        if len(tried) < 4:
            raise OSError(errno.EADDRINUSE, "taken")
        return create(("127.0.0.1", 0), **options)

    monkeypatch.setattr(socket, "create_server", create_server)
    with listen(Settings(host="name", port=0, public=True)) as found:
        assert found.sockets[0].getsockname()[1] == tried[3]
        assert found.address == f"http://name:{tried[3]}"
    assert len(tried) == 4


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_machines_are_not_let_in_without_a_key(host: str) -> None:
    message = refusal(USAGE, host=host, port=0)
    assert "--api-key-file FILE" in message
    assert "--public" in message


@pytest.mark.parametrize("leave", [{"public": True}, {"api_keys": ("key",)}])
def test_other_machines_are_let_in_with_a_key_or_if_configured(leave: dict[str, object]) -> None:
    with listen(Settings(host="0.0.0.0", port=0, **leave)) as found:  # type: ignore[arg-type]
        assert found.sockets


@pytest.mark.parametrize(("host", "code"), [("no.such.host.invalid", USAGE), ("192.0.2.1", UNAVAILABLE)])
def test_an_address_of_another_machine_is_reported(host: str, code: int) -> None:
    assert f"--host {host}" in refusal(code, host=host, port=0, public=True)


@pytest.mark.slow
def test_a_port_in_use_is_reported_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = lmwire("serve", "--port", str(port), "--worker", "/no/such/worker")
    assert result.returncode == UNAVAILABLE
    message = f"lmwire: 127.0.0.1 port {port} is taken: end what listens there, or give another --port"
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_public_address_without_a_key_is_refused_at_once_and_in_words() -> None:
    result = lmwire("serve", "--host", "0.0.0.0", "--port", "0", "--worker", "/no/such/worker")
    assert result.returncode == USAGE
    assert result.stderr.startswith("lmwire: --host 0.0.0.0 lets other machines in: ")


# Unix sockets. Their paths are short: a system has room for some hundred bytes.


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return "s"


def test_a_unix_socket_is_its_owners_alone(path: str) -> None:
    with listen(Settings(unix_socket=path)) as found:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert found.address == f"unix:{path}"
    assert not os.path.exists(path)


def test_a_unix_socket_of_a_killed_server_is_replaced(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(path)
    with listen(Settings(unix_socket=path)), socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def test_a_unix_socket_in_use_is_not_replaced(path: str) -> None:
    with listen(Settings(unix_socket=path)):
        assert "is taken" in refusal(UNAVAILABLE, unix_socket=path)
        assert os.path.exists(path)


def test_a_file_that_is_not_a_socket_is_not_replaced(path: str) -> None:
    Path(path).write_text("mine")
    assert "give another path" in refusal(USAGE, unix_socket=path)
    assert Path(path).read_text() == "mine"


def test_another_servers_socket_in_its_place_is_left_alone(path: str) -> None:
    with listen(Settings(unix_socket=path)):
        os.unlink(path)
        Path(path).write_text("another's")
    assert os.path.exists(path)


@pytest.mark.parametrize("path", ["no/such/folder/s", "x" * 200])
def test_an_invalid_socket_path_is_named(path: str) -> None:
    assert f"--uds {path}: cannot listen there: " in refusal(UNAVAILABLE, unix_socket=path)


@pytest.mark.slow
def test_a_server_serves_on_a_unix_socket_and_removes_it(path: str) -> None:
    with served_process("--uds", path, "--worker", MOCK) as server:
        assert server.url == f"unix:{path}"
        assert asked(server.url, "GET", "/health").json == {"status": "ok"}
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait() == 0
    assert not os.path.exists(path)
