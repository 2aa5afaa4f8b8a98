"""TLS in front of a server by packaging/nginx/tls.conf: host names, web pages, streams, keys and forged headers."""

import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.http.http_server import MOCK, Server, served_process
from support.http.ports import unused_port
from support.http.raw_http import CHAT, Answer, RawClient, chat_body
from support.process.nginx import nginx
from support.process.programs import program
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.nightly

CONF = Path(__file__).parents[2] / "packaging" / "nginx" / "tls.conf"
NAME = "lmwire.example"


class Proxy(NamedTuple):
    """nginx in front of a server."""

    folder: Path
    port: int

    def client(self, name: str = NAME) -> RawClient:
        """Return a connection to a name, whose certificate is verified."""
        client = RawClient(f"http://127.0.0.1:{self.port}")
        context = ssl.create_default_context(cafile=self.folder / "certificate.pem")
        try:
            client.socket = context.wrap_socket(client.socket, server_hostname=name)
        except BaseException:
            client.close()
            raise
        return client

    def asked(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Return the answer to one request over TLS."""
        with self.client() as client:
            client.ask(method, path, body, **{"host": NAME, **headers})
            return client.answer()


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[Callable[[Server], Proxy]]:
    """Return a function that puts nginx in front of a server."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", key, "-out", certificate]
    subprocess.run([program("openssl"), *request, *names], check=True, capture_output=True, timeout=SECONDS)
    running = []

    def run(server: Server) -> Proxy:
        proxy = Proxy(tmp_path, unused_port())
        text = CONF.read_text()
        for old, new in {
            "listen 443": f"listen 127.0.0.1:{proxy.port}",
            "listen 80": f"listen unix:{tmp_path}/plain",
            "/etc/lmwire/": f"{tmp_path}/",
            "http://127.0.0.1:8080": server.url,
        }.items():
            assert old in text
            text = text.replace(old, new)
        context = nginx(tmp_path, text)
        context.__enter__()
        running.append(context)
        return proxy

    yield run
    for context in running:
        context.__exit__(None, None, None)


def test_browsers_use_the_page_by_the_servers_name_and_other_pages_do_not(proxied: Callable[[Server], Proxy]) -> None:
    with served_process("mock", "--worker", MOCK, "--host-name", NAME) as server:
        proxy = proxied(server)
        assert b"<!doctype html>" in proxy.asked("GET", "/", accept="text/html").body
        chat = chat_body("hello", model="mock")
        own = proxy.asked("POST", CHAT, chat, origin=f"https://{NAME}", sec_fetch_site="same-origin")
        assert own.status == 200, own
        foreign = proxy.asked("POST", CHAT, chat, origin="https://evil.example", sec_fetch_site="cross-site")
        assert foreign.json["error"]["code"] == "origin_not_allowed"
        with pytest.raises(ssl.SSLError):
            proxy.client("rebound.example")


def test_a_server_that_was_not_told_its_name_refuses_it(proxied: Callable[[Server], Proxy]) -> None:
    with served_process("mock", "--worker", MOCK) as server:
        refused = proxied(server).asked("GET", "/v1/models")
    assert (refused.status, refused.json["error"]["code"]) == (403, "host_not_allowed")


def test_tokens_arrive_as_they_come_and_a_client_that_leaves_ends_its_request(
    proxied: Callable[[Server], Proxy],
) -> None:
    with served_process("mock", "--worker", f"{MOCK} --token-ms 5", "--api-key", "k") as server:
        with proxied(server).client() as client:
            body = chat_body("endless", model="mock", stream=True, max_tokens=1_000_000)
            client.ask("POST", CHAT, body, host=NAME, authorization="Bearer k")
            client.read_until(b"endless")
        server.wait_for_line("status=499")


def test_a_key_decides_whatever_the_headers_of_proxies_say(proxied: Callable[[Server], Proxy]) -> None:
    forged = {"x_forwarded_for": "127.0.0.1", "x_real_ip": "127.0.0.1", "forwarded": "for=127.0.0.1"}
    with served_process("mock", "--worker", MOCK, "--api-key", "k") as server:
        proxy = proxied(server)
        assert proxy.asked("GET", "/v1/models", **forged).status == 401
        answer = proxy.asked("GET", "/v1/models", authorization="Bearer k", **forged)
        assert answer.status == 200
        assert answer.headers["x-request-id"] in (proxy.folder / "access.log").read_text()
        server.wait_for_line(answer.headers["x-request-id"])


def test_plain_http_leads_to_tls(proxied: Callable[[Server], Proxy]) -> None:
    with served_process("mock", "--worker", MOCK) as server:
        proxy = proxied(server)
        with RawClient(f"unix:{proxy.folder}/plain") as plain:
            plain.ask("GET", "/docs", host=NAME)
            answer = plain.answer()
    assert (answer.status, answer.headers["location"]) == (301, f"https://{NAME}/docs")
