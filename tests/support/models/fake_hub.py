"""A model hub on 127.0.0.1: as much of its interface as a download uses, serving one folder as one model."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from random_model import write_model
from support.process.worker_process import SECONDS

COMMIT = "c" * 40


class Hub(ThreadingHTTPServer):
    """Server of `folder` as the model `name`. `requests` has every request, as `GET /path`."""

    daemon_threads = True

    def __init__(self, folder: Path, name: str = "owner/model") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.name = name
        self.requests: list[str] = []
        self.refusal: tuple[int, str] | None = None
        """A status and a reason to refuse everything with."""
        self.refusal_code: str | None = None
        """The hub's own name of the refusal, such as GatedRepo."""
        self.revisions = {"main", "v2", COMMIT}
        self.stall: str | None = None
        """A file whose second half is sent only when `go_on` is set."""
        self.go_on = threading.Event()
        self.half_sent = threading.Event()
        """Set once the first half of `stall` has been sent."""
        self.ranges: list[str] = []
        """The ranges that requests for files ask for."""

    @property
    def own_requests(self) -> list[str]:
        """The requests for its model. A download of another test's, which was cancelled, may still ask for that."""
        return [request for request in self.requests if self.name in request]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def running(hub: Hub) -> Iterator[Hub]:
    thread = threading.Thread(target=hub.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield hub
    finally:
        hub.go_on.set()
        hub.shutdown()
        thread.join(SECONDS)
        hub.server_close()


@contextmanager
def only_hub(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Run a hub with a tiny model, and let all programs use it, with nothing cached.

    Args:
        name: The model's id.
        folder: An empty folder for the model and the cache.
        monkeypatch: Restores the environment.
    """
    with running(Hub(write_model(folder / "served"), name)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HOME", str(folder / "home"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        yield hub


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> Hub:
        assert isinstance(self.server, Hub)
        return self.server

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        hub = self.hub
        hub.requests.append(f"{self.command} {self.path}")
        path = self.path.split("?")[0]
        if hub.refusal is not None:
            status, reason = hub.refusal
            code = {"X-Error-Code": hub.refusal_code} if hub.refusal_code else {}
            self._send(status, b"", {"X-Error-Message": reason, **code}, with_body)
        elif "/revision/" in path and path.rsplit("/", 1)[1] not in hub.revisions:
            headers = {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"}
            self._send(404, b"", headers, with_body)
        elif path.startswith(f"/{hub.name}/resolve/{COMMIT}/"):
            self._send_file(hub.folder / path.rsplit("/", 1)[1], with_body)
        elif path.startswith(f"/api/models/{hub.name}/tree/"):
            self._send_json([{"type": "file", "path": f.name, **_facts(f)} for f in self._files()])
        elif path.startswith(f"/api/models/{hub.name}"):
            siblings = [{"rfilename": file.name, **_facts(file)} for file in self._files()]
            self._send_json({"id": hub.name, "sha": COMMIT, "siblings": siblings})
        else:
            self._send(404, b"", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, with_body)

    def _files(self) -> list[Path]:
        return sorted(self.hub.folder.iterdir())

    def _send_file(self, file: Path, with_body: bool) -> None:
        body = file.read_bytes()
        headers = {"ETag": f'"{_etag(file)}"', "X-Repo-Commit": COMMIT}
        if with_body and file.name == self.hub.stall:
            half = len(body) // 2
            self._send(200, body[:half], headers | {"Content-Length": str(len(body))}, with_body)
            self.wfile.flush()
            self.hub.half_sent.set()
            if self.hub.go_on.wait(SECONDS):
                self.wfile.write(body[half:])
        elif with_body and (wanted := self.headers.get("Range")):
            self.hub.ranges.append(wanted)
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            self._send(206, body[start:], headers, with_body)
        else:
            self._send(200, body, headers, with_body)

    def _send_json(self, content: Any) -> None:
        self._send(200, json.dumps(content).encode(), {"Content-Type": "application/json"}, True)

    def _send(self, status: int, body: bytes, headers: dict[str, str], with_body: bool) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:  # a client that cancelled
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _facts(file: Path) -> dict[str, Any]:
    return {"size": file.stat().st_size, "oid": _etag(file), "blobId": _etag(file)}


def _etag(file: Path) -> str:
    return hashlib.sha256(file.name.encode()).hexdigest()[:40]
