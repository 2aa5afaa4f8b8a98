"""Two servers with packaging/nginx/lmwire.conf in front: one may die, and both may be restarted one after the other.

They run at night: two servers, nginx and a death take long, and the file seldom changes.
"""

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from support.http.http_server import MOCK, Server, ServerProcess, served_process, wait_until
from support.http.ports import unused_port
from support.http.raw_http import CHAT, RawClient, asked, chat_body
from support.process.nginx import nginx
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.nightly

CONF = Path(__file__).parents[2] / "packaging" / "nginx" / "lmwire.conf"


@contextmanager
def proxy(folder: Path, servers: list[Server]) -> Iterator[str]:
    """Run nginx with the file of the repository, whose addresses are replaced. Yield its address."""
    text = CONF.read_text()
    for port, server in zip(("8081", "8082"), servers, strict=True):
        assert f"127.0.0.1:{port}" in text
        text = text.replace(f"127.0.0.1:{port}", server.url.removeprefix("http://"))
    port = unused_port()
    text = text.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    with nginx(folder, text):
        yield f"http://127.0.0.1:{port}"


def chats(server: Server) -> int:
    """Return how many chat completions a server has answered."""
    text = asked(server.url, "GET", "/metrics").body.decode()
    found = re.findall(r"^lmwire_http_requests_total{.*chat/completions.*} (\S+)", text, re.MULTILINE)
    return sum(int(float(number)) for number in found)


def chat(url: str, conversation: str) -> None:
    """Let a conversation have a whole answer."""
    body = chat_body("three words here", model="mock", stream=True)
    answer = asked(url, "POST", CHAT, body, x_conversation=conversation)
    assert (answer.status, b"[DONE]" in answer.body) == (200, True), answer


def mock(worker: str = MOCK, port: int = 0) -> AbstractContextManager[ServerProcess]:
    """A server of the mock."""
    return served_process("mock", "--worker", worker, "--port", str(port))


def test_requests_go_on_when_the_server_that_answered_them_dies(tmp_path: Path) -> None:
    with mock() as one, mock() as other, proxy(tmp_path, [one, other]) as url:
        for _ in range(3):
            chat(url, "a")
        counts = {id(server): chats(server) for server in (one, other)}
        assert sorted(counts.values()) == [0, 3]  # a conversation stays with one server
        dies, stays = (one, other) if counts[id(one)] else (other, one)
        dies.process.kill()
        dies.process.wait(SECONDS)
        for _ in range(3):
            chat(url, "a")
        assert chats(stays) == 3


def test_a_conversation_stays_with_its_server_and_conversations_are_spread(tmp_path: Path) -> None:
    with mock() as one, mock() as other, proxy(tmp_path, [one, other]) as url:
        homes: list[bool] = []
        for turn in range(2):
            for number in range(16):
                before = chats(one)
                chat(url, f"conversation {number}")
                homes.append(chats(one) > before)
            assert homes[:16] == homes[16 * turn :]
        assert len(set(homes)) == 2


def test_a_server_that_is_killed_in_mid_stream_ends_its_streams_alone(tmp_path: Path) -> None:
    slow = f"{MOCK} --token-ms 5"
    with mock(slow) as one, mock(slow) as other, proxy(tmp_path, [one, other]) as url, ExitStack() as opened:
        streams = {f"conversation {number}": opened.enter_context(RawClient(url)) for number in range(16)}
        for conversation, stream in streams.items():
            body = chat_body("endless", model="mock", stream=True, max_tokens=1_000_000)
            stream.ask("POST", CHAT, body, x_conversation=conversation)
            stream.read_until(b"endless")
        one.process.kill()
        one.process.wait(SECONDS)
        cut = [conversation for conversation, stream in streams.items() if not goes_on(stream)]
        assert 0 < len(cut) < 16
        for stream in streams.values():
            stream.close()
        chat(url, cut[0])  # its next request is answered


def goes_on(stream: RawClient) -> bool:
    """Return whether a stream has a further thousand tokens; it ends without its last event otherwise."""
    try:
        for _ in range(1000):
            stream.read_until(b"endless")
    except (EOFError, ConnectionResetError) as error:
        assert "[DONE]" not in str(error)
        return False
    return True


def test_a_rolling_restart_fails_no_request(tmp_path: Path) -> None:
    with ExitStack() as opened:
        servers = [opened.enter_context(mock()) for _ in range(2)]
        url = opened.enter_context(proxy(tmp_path, [*servers]))
        stopped = threading.Event()

        def ask(client: int) -> int:
            asks = 0
            while not stopped.is_set() or not asks:
                chat(url, f"client {client} of {asks}")
                asks += 1
            return asks

        with ThreadPoolExecutor(3) as clients:
            asked_by = [clients.submit(ask, client) for client in range(3)]
            try:
                for server in servers:
                    server.process.terminate()  # it answers what it has, and takes nothing new
                    assert server.process.wait(SECONDS) == 0
                    restarted = opened.enter_context(mock(port=int(server.url.rpartition(":")[2])))
                    wait_until(lambda url=restarted.url: asked(url, "GET", "/ready").status == 200, "never ready")
                    chat(restarted.url, "ready")
            finally:
                stopped.set()
            assert all(client.result() for client in asked_by)
