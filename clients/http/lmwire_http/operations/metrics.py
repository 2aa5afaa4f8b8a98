"""What happened, counted for Prometheus."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from lmwire_protocol import events

if TYPE_CHECKING:
    from ..call import Call

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
_SLOW = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The server's counters. Those of the workers are asked for when somebody reads."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._running = Gauge("lmwire_http_requests_in_flight", "Requests being served.", registry=self.registry)
        self._requests = Counter(
            "lmwire_http_requests", "Requests answered.", ["path", "model", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "lmwire_http_request_seconds", "From head to end.", ["path"], buckets=_SLOW, registry=self.registry
        )
        self._tokens = Counter("lmwire_tokens", "Tokens.", ["model", "kind"], registry=self.registry)
        self._first = Histogram(
            "lmwire_first_token_seconds", "From head to first token.", ["model"], buckets=_SLOW, registry=self.registry
        )
        self._apart = Histogram(
            "lmwire_inter_token_seconds", "Between tokens.", ["model"], buckets=_FAST, registry=self.registry
        )

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        """A request is being served."""
        with self._running.track_inprogress():
            yield

    def ended(self, path: str, call: "Call", status: int) -> None:
        """A request has ended."""
        self._requests.labels(path, call.model, status).inc()
        self._seconds.labels(path).observe(monotonic() - call.began)

    def token_times(self, model: str) -> tuple[Histogram, Histogram]:
        """Where the seconds to a first token, and those between tokens, are observed."""
        return self._first.labels(model), self._apart.labels(model)

    def used(self, model: str, usage: events.Usage) -> None:
        """A generation has ended."""
        for kind, count in (
            ("prompt", usage.prompt_tokens),
            ("cached", usage.cached_tokens),
            ("completion", usage.completion_tokens),
        ):
            self._tokens.labels(model, kind).inc(count)
