"""Whose socket listens at an address of this machine, and requests that stay there."""

import os
import socket
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError
from urllib.request import Request

import pytest

from lmwire.cli import local_servers
from lmwire.cli.local_servers import listener_of, open_url
from support.process.worker_process import SECONDS

URL = "http://127.0.0.1:8080"
ME, ROOT, STRANGER, UNKNOWN = 1000, 0, 1001, 65534
ROW = "   0: {}:1F90 00000000:0000 {} 00000000:00000000 00:00000000 00000000 {:5d}        0 23244 1 0000 100 0 0 10 0"
LOOPBACK, ANY, ELSEWHERE = b"\x7f\0\0\1", bytes(4), b"\x0a\0\0\1"
LOOPBACK_6, ANY_6, MAPPED = bytes(15) + b"\1", bytes(16), bytes(10) + b"\xff\xff" + LOOPBACK


def row(packed: bytes, uid: int, state: str = "0A") -> str:
    """Return a row of the kernel's table for a socket at port 8080."""
    words = [int.from_bytes(packed[start : start + 4], sys.byteorder) for start in range(0, len(packed), 4)]
    return ROW.format("".join(f"{word:08X}" for word in words), state, uid)


@pytest.mark.parametrize(
    ("sockets", "owner"),
    [
        ([], "nobody"),
        ([(LOOPBACK, ME)], "user"),
        ([(LOOPBACK, ROOT)], "user"),
        ([(LOOPBACK, STRANGER)], "other"),
        ([(LOOPBACK, UNKNOWN)], "other"),
        ([(ANY, ME)], "user"),
        ([(ANY, STRANGER)], "other"),
        ([(ANY_6, STRANGER)], "other"),
        ([(MAPPED, STRANGER)], "other"),
        ([(MAPPED, ME)], "user"),
        ([(LOOPBACK, ME), (LOOPBACK, ME)], "user"),
        ([(LOOPBACK, ME), (LOOPBACK, STRANGER)], "other"),
        ([(LOOPBACK, ME), (ANY, STRANGER)], "other"),
        ([(LOOPBACK, ME), (ANY_6, STRANGER)], "other"),
        ([(ELSEWHERE, ME)], "nobody"),
        ([(LOOPBACK_6, ME)], "nobody"),
        ([(LOOPBACK, ME), (ELSEWHERE, STRANGER), (LOOPBACK_6, STRANGER)], "user"),
    ],
)
def test_an_address_is_the_users_if_all_that_can_answer_there_is(
    sockets: list[tuple[bytes, int]], owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "tcp"
    table.write_text("\n".join(["  sl  local_address …", *(row(*each) for each in sockets)]))
    monkeypatch.setattr(local_servers, "_TABLES", (str(table), str(tmp_path / "missing")))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: ME)
    assert listener_of(URL) == owner


def test_a_connection_is_no_listener() -> None:
    assert list(local_servers.read_table([row(LOOPBACK, ME, state="01")])) == []


@pytest.mark.parametrize("source", ["_in_own_processes", *(["_in_tables"] if sys.platform == "linux" else [])])
def test_a_socket_of_this_process_is_the_users(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for used in ("_in_own_processes", "_in_tables"):
        monkeypatch.setattr(local_servers, used, getattr(local_servers, source))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        assert listener_of(url) == "user"
    assert listener_of(url) == "nobody"


def test_a_key_does_not_follow_a_redirection() -> None:
    seen: list[str] = []

    class Redirecting(BaseHTTPRequestHandler):
        """Sends each client to another path, and writes down what it was asked for."""

        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(302)
            self.send_header("location", "/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing."""

    with HTTPServer(("127.0.0.1", 0), Redirecting) as server:
        Thread(target=server.handle_request, daemon=True).start()
        request = Request(f"http://127.0.0.1:{server.server_port}/first", headers={"authorization": "Bearer key"})
        with pytest.raises(HTTPError):
            open_url(request, timeout=SECONDS)
    assert seen == ["/first"]
