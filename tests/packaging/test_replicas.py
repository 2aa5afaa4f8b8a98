"""Two servers with packaging/nginx/lmwire.conf in front: one may die.

It runs at night: two servers, nginx and a death take long, and the file seldom changes.
"""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.http.http_server import MOCK, Server, served_process
from support.http.ports import unused_port
from support.http.raw_http import CHAT, asked, chat_body
from support.process.programs import program
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.nightly

CONF = Path(__file__).parents[2] / "packaging" / "nginx" / "lmwire.conf"


@contextmanager
def proxy(folder: Path, servers: list[Server]) -> Iterator[str]:
    """Run nginx with the file of the repository, whose addresses are replaced. Yield its address.

    nginx returns to the shell when it listens, so that nothing needs to wait for it.
    """
    text = CONF.read_text()
    for port, server in zip(("8081", "8082"), servers, strict=True):
        assert f"127.0.0.1:{port}" in text
        text = text.replace(f"127.0.0.1:{port}", server.url.removeprefix("http://"))
    port = unused_port()
    text = text.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    paths = "\n".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"pid {folder}/pid; error_log {folder}/error.log; events {{}}\nhttp {{ access_log off; {paths}\n{text}\n}}\n"
    )
    command = [program("nginx"), "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
    subprocess.run(command, check=True, timeout=SECONDS)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        subprocess.run([*command, "-s", "quit"], check=True, timeout=SECONDS)


def chats(server: Server) -> int:
    """Return how many chat completions a server has answered."""
    text = asked(server.url, "GET", "/metrics").body.decode()
    found = re.findall(r"^lmwire_http_requests_total{.*chat/completions.*} (\S+)", text, re.MULTILINE)
    return sum(int(float(number)) for number in found)


def test_requests_go_on_when_the_server_that_answered_them_dies(tmp_path: Path) -> None:
    with (
        served_process("mock", "--worker", MOCK) as one,
        served_process("mock", "--worker", MOCK) as other,
        proxy(tmp_path, [one, other]) as url,
    ):
        body = chat_body("three words here", model="mock", stream=True)
        for _ in range(3):
            assert asked(url, "POST", CHAT, body).status == 200
        counts = {id(server): chats(server) for server in (one, other)}
        assert sorted(counts.values()) == [0, 3]  # a client stays with one server
        dies, stays = (one, other) if counts[id(one)] else (other, one)
        dies.process.kill()
        dies.process.wait(SECONDS)
        for _ in range(3):
            answer = asked(url, "POST", CHAT, body)
            assert (answer.status, b"[DONE]" in answer.body) == (200, True)
        assert chats(stays) == 3
