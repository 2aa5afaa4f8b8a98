"""A relay between a client and the server, which records what they send each other byte by byte."""

import os
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit

from httptools import HttpRequestParser, HttpResponseParser

from lmwire_http.http.unknown_fields import IGNORED_FIELDS_HEADER
from support.clients.captured import Exchange, capture

_BLOCK = 65536


class Relay:
    """A port of this machine that stands for the server's.

    Args:
        target: URL of the server.
    """

    def __init__(self, target: str) -> None:
        address = urlsplit(target)
        self.target = (str(address.hostname), int(address.port or 80))
        self.url = ""
        self._connections: list[tuple[bytearray, bytearray]] = []

    @property
    def exchanges(self) -> list[Exchange]:
        """All requests so far, in the order of their connections."""
        return [exchange for sent, received in [*self._connections] for exchange in _parse(sent, received)]

    def sent(self, path: str) -> list[Exchange]:
        """Return the requests to an endpoint."""
        return [exchange for exchange in self.exchanges if exchange.path.partition("?")[0] == path]

    def refusals(self) -> list[str]:
        """Return a line for each request that the server refused or failed to answer."""
        return [f"{e.method} {e.path}: {e.status} {e.body.decode()}" for e in self.exchanges if e.status >= 400]

    def handle(self, client: socket.socket) -> None:
        """Pass everything on in both directions until either side closes."""
        sent, received = bytearray(), bytearray()
        self._connections.append((sent, received))
        with socket.create_connection(self.target) as server:
            upward = threading.Thread(target=_copy, args=(client, server, sent), daemon=True)
            upward.start()
            _copy(server, client, received)
            upward.join()


@contextmanager
def relayed(target: str) -> Generator[Relay]:
    """Yield a relay to the server at this URL."""
    relay = Relay(target)
    with listening(relay.handle) as port:
        relay.url = f"http://127.0.0.1:{port}"
        yield relay
    if folder := os.environ.get("LMWIRE_CAPTURE"):
        capture(relay.exchanges, Path(folder))


@contextmanager
def listening(handle: Callable[[socket.socket], None]) -> Generator[int]:
    """Yield a port on which each connection is handled in a thread of its own.

    Args:
        handle: Takes a connection, which is closed once it returns.
    """

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            handle(self.request)

    class Listener(ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Listener(("127.0.0.1", 0), Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield listener.server_address[1]
        finally:
            listener.shutdown()
            thread.join()


def _copy(source: socket.socket, destination: socket.socket, copied: bytearray) -> None:
    """Copy what one side sends, and close the other's direction when it ends."""
    try:
        while block := source.recv(_BLOCK):
            copied.extend(block)
            destination.sendall(block)
        destination.shutdown(socket.SHUT_WR)
    except OSError:  # one of them has reset its connection; the other learns it the same way
        for end in (source, destination):
            _close(end)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


class _Requests:
    """Callbacks of httptools for the requests of a connection."""

    def __init__(self) -> None:
        self.found: list[Exchange] = []
        self.parser = HttpRequestParser(self)

    def on_message_begin(self) -> None:
        self.found.append(Exchange("", ""))

    def on_url(self, url: bytes) -> None:
        self.found[-1].path += url.decode()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.found[-1].headers[name.decode().lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.found[-1].method = self.parser.get_method().decode()

    def on_body(self, body: bytes) -> None:
        self.found[-1].body += body


class _Responses:
    """Callbacks of httptools for the responses of a connection: their statuses and ignored fields."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []
        self._ignored = ""
        self.parser = HttpResponseParser(self)

    def on_message_begin(self) -> None:
        self._ignored = ""

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.decode().lower() == IGNORED_FIELDS_HEADER:
            self._ignored = value.decode()

    def on_headers_complete(self) -> None:
        self.found.append((self.parser.get_status_code(), self._ignored))


def _parse(sent: bytearray, received: bytearray) -> list[Exchange]:
    requests, responses = _Requests(), _Responses()
    requests.parser.feed_data(bytes(sent))
    responses.parser.feed_data(bytes(received))
    final = [response for response in responses.found if response[0] >= 200]
    for exchange, (status, ignored) in zip(requests.found, final, strict=False):
        exchange.status, exchange.ignored = status, ignored
    return requests.found
