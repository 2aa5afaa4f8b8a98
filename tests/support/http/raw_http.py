"""HTTP over a plain socket, to send what a client library would not, and to see what it hides."""

import json
import socket
import struct
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from support.process.worker_process import SECONDS

CHAT = "/v1/chat/completions"


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Value of the JSON body."""
        return json.loads(self.body)


class RawClient:
    """One connection to a server.

    Args:
        url: The server's address, such as `http://127.0.0.1:8080` or `unix:/path`.
    """

    def __init__(self, url: str) -> None:
        if url.startswith("unix:"):
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(SECONDS)
            self.socket.connect(url.removeprefix("unix:"))
        else:
            parts = urlsplit(url)
            self.socket = socket.create_connection((parts.hostname, parts.port), SECONDS)
        self._read = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> None:
        """Send a request. Underscores in a header's name become hyphens."""
        self.send(request(method, path, body, **headers))

    def chat(self, words: str, *, model: str = "mock", stream: bool = False, **fields: Any) -> None:
        """Send a chat request with these words."""
        self.ask("POST", CHAT, chat_body(words, model=model, stream=stream, **fields))

    def read_until(self, marker: bytes) -> bytes:
        """Read up to these bytes, and return everything read, including them."""
        while marker not in self._read:
            if not (more := self.socket.recv(65536)):
                raise EOFError(f"the server closed the connection after {self._read!r}")
            self._read += more
        end = self._read.index(marker) + len(marker)
        found, self._read = self._read[:end], self._read[end:]
        return found

    def answer(self, *, head: bool = False) -> Answer:
        """Read one whole response; `head` means that the request was HEAD, so the response has only headers."""
        lines = self.read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        body = b"" if head else self._body(headers)
        return Answer(int(lines[0].split()[1]), headers, body)

    def at_end(self) -> bool:
        """Return whether the server closes the connection before it sends more. Wait for either."""
        try:
            return not self._read and not self.socket.recv(1)
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def reset(self) -> None:
        """Reset the connection, as happens when a program is killed with unread bytes."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return self._exactly(int(headers.get("content-length", "0")))
        body = b""
        while size := int(self.read_until(b"\r\n"), 16):
            body += self._exactly(size)
            self.read_until(b"\r\n")
        self.read_until(b"\r\n")
        return body

    def _exactly(self, count: int) -> bytes:
        while len(self._read) < count:
            if not (more := self.socket.recv(65536)):
                raise EOFError("the server closed the connection in the middle of a body")
            self._read += more
        found, self._read = self._read[:count], self._read[count:]
        return found


def request(method: str, path: str, body: Any = None, **headers: str) -> bytes:
    """Return a whole request. A `body` that is not bytes is encoded as JSON."""
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {"host": "localhost", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if data and "transfer-encoding" not in named:
        named.setdefault("content-length", str(len(data)))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + data


def chat_body(words: str, *, model: str = "mock", **fields: Any) -> dict[str, Any]:
    """Return the body that `chat` sends."""
    return {"model": model, "messages": [{"role": "user", "content": words}], **fields}


def asked(url: str, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    """Return a server's response to one request."""
    with RawClient(url) as client:
        client.ask(method, path, body, **headers)
        return client.answer(head=method == "HEAD")
