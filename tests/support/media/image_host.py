"""A web server on this machine that serves an image, and imitates the failures of other servers."""

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs, urlsplit

from lmwire_worker.media.fetch import public_addresses
from support.media.reading_media import encoded, picture

NAME = "images.example"
"""Host name that `resolve` maps to this machine."""
IMAGE = encoded(picture())


def resolve(host: str, port: int) -> list[str]:
    """Return this machine's address for `NAME`, and the public addresses of any other host."""
    return ["127.0.0.1"] if host == NAME else public_addresses(host, port)


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # the end of the server waits for them, so that none closes a socket during a later test

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that hangs up, which some tests do on purpose."""


class ImageHost:
    """The server, in threads of its own. Leaving the context stops it and every response that hangs.

    Args:
        certificate: A file with a key and its certificate, to serve https.
    """

    def __init__(self, certificate: str | None = None) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        """The paths and the headers of the requests."""
        self.over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def url(self, path: str, host: str = NAME) -> str:
        return f"{self._scheme}://{host}:{self._server.server_port}{path}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        host = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                host.asked.append((self.path, dict(self.headers)))
                parts = urlsplit(self.path)
                match parts.path:
                    case "/to":
                        self._answer(302, b"", Location=parse_qs(parts.query)["url"][0])
                    case "/loop":
                        self._answer(302, b"", Location="/loop")
                    case "/page":
                        self._answer(200, b"<html>", **{"Content-Type": "text/html; charset=utf-8"})
                    case "/nothing":
                        self._answer(200, b"")
                    case "/short":
                        self._answer(200, IMAGE, **{"Content-Length": str(len(IMAGE) + 10)})
                        self.close_connection = True
                    case "/chunks":
                        self._answer(
                            200, b"%x\r\n%b\r\n0\r\n\r\n" % (len(IMAGE), IMAGE), **{"Transfer-Encoding": "chunked"}
                        )
                    case "/until-the-end":
                        self._answer(200, IMAGE, Connection="close")
                    case "/silent":
                        host.over.wait()
                    case "/slow":
                        self._answer(200, IMAGE[:1], **{"Content-Length": str(len(IMAGE))})
                        host.over.wait()
                    case "/drip":
                        while not host.over.wait(0.01):
                            self.wfile.write(b"H")
                            self.wfile.flush()
                    case "/babble":
                        self.wfile.write(b"Nonsense\r\n\r\n")
                        self.close_connection = True
                    case "/image.png" | "/a%20b/%C3%BC.png":
                        self._answer(200, IMAGE, **{"Content-Type": "image/png"})
                    case path:
                        self._answer(int(path[1:]), b"")

            def _answer(self, status: int, content: bytes, **headers: str) -> None:
                self.send_response(status)
                if not headers.keys() & {"Content-Length", "Transfer-Encoding", "Connection"}:
                    headers["Content-Length"] = str(len(content))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        return Handler
