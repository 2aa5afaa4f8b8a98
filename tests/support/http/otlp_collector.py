"""An OpenTelemetry collector on loopback: takes spans by OTLP over HTTP, as any real one does, and keeps them."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.process.worker_process import SECONDS


class Collector:
    """A running collector."""

    def __init__(self) -> None:
        self.spans: SimpleQueue[Span] = SimpleQueue()
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.resource: dict[str, Any] = {}
        """Attributes of the last batch's sender."""
        self.reached = threading.Event()
        """Set when a batch has come."""
        self.open = threading.Event()
        """Batches are answered only while it is set."""
        self.open.set()
        self.url = ""

    def next(self) -> Span:
        """Wait for the next span."""
        return self.spans.get(timeout=SECONDS)

    def take(self, path: str, body: bytes) -> None:
        """Keep the spans of a batch, once the collector is open."""
        self.reached.set()
        self.open.wait()
        self.bodies.append(body)
        self.paths.append(path)
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resource = values(group.resource.attributes)
            for scope in group.scope_spans:
                for span in scope.spans:
                    self.spans.put(span)


@contextmanager
def collecting() -> Generator[Collector]:
    """A collector on a port that was free, until the block ends."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self.path, self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        collector.open.set()
        server.shutdown()
        server.server_close()


def values(attributes: Any) -> dict[str, Any]:
    """The values of a message's attributes by name."""
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)
