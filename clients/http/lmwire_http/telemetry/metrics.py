"""What happened, counted for Prometheus."""

from contextlib import AbstractContextManager
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from lmwire_protocol import events

if TYPE_CHECKING:
    from ..http.context import Call

_FAST: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
_SLOW: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_MODELS: Final = 1000
"""Names of models that have figures of their own. Clients choose names, and each takes memory for ever."""
_OTHER: Final = "other"


class Metrics:
    """The server's counters. Those of the workers are asked for when somebody reads."""

    def __init__(self) -> None:
        disable_created_metrics()  # a series of its own for each, that nobody asks for
        self.registry = CollectorRegistry()
        self._labelled = cache(_with_labels)
        self._served: set[str] = set()
        self._running = Gauge("lmwire_http_requests_in_flight", "Requests being served.", registry=self.registry)
        self._requests = Counter(
            "lmwire_http_requests", "Requests answered.", ["path", "model", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "lmwire_http_request_duration_seconds", "From head to end.", ["path"], buckets=_SLOW, registry=self.registry
        )
        self._tokens = Counter("lmwire_tokens", "Tokens.", ["model", "kind"], registry=self.registry)
        self._first = Histogram(
            "lmwire_time_to_first_token_seconds",
            "From head to first token.",
            ["model"],
            buckets=_SLOW,
            registry=self.registry,
        )
        self._apart = Histogram(
            "lmwire_inter_token_seconds", "Between tokens.", ["model"], buckets=_FAST, registry=self.registry
        )

        self._queued = Histogram(
            "lmwire_queue_seconds",
            "In the queue, for a worker of a model in memory.",
            ["model"],
            buckets=_SLOW,
            registry=self.registry,
        )

    def in_flight(self) -> AbstractContextManager[Any]:
        """A request is being served, as long as the block lasts."""
        return self._running.track_inprogress()

    def ended(self, path: str, call: "Call", status: int) -> None:
        """A request has ended."""
        # A name that no worker ever answered to is the client's invention.
        model = call.model if call.model in self._served else ""
        self._labelled(self._requests, path, model, status).inc()
        self._labelled(self._seconds, path).observe(monotonic() - call.began)

    def queued(self, model: str, seconds: float) -> None:
        """A request has waited for its turn, and a worker of the model has it now."""
        self._labelled(self._queued, self._name(model)).observe(seconds)

    def token_times(self, model: str) -> tuple[Histogram, Histogram]:
        """Where the seconds to a first token, and those between tokens, are observed."""
        name = self._name(model)
        return self._labelled(self._first, name), self._labelled(self._apart, name)

    def used(self, call: "Call", usage: events.Usage) -> None:
        """Work of a worker's has ended: it is counted, and told in the call's line of the log."""
        call.prompt_tokens += usage.prompt_tokens
        call.completion_tokens += usage.completion_tokens
        name = self._name(call.model)
        for kind, count in (
            ("prompt", usage.prompt_tokens),
            ("cached", usage.cached_tokens),
            ("completion", usage.completion_tokens),
        ):
            self._labelled(self._tokens, name, kind).inc(count)

    def _name(self, model: str) -> str:
        """The label of a model that a worker answers for."""
        if model not in self._served:
            if len(self._served) >= _MODELS:
                return _OTHER
            self._served.add(model)
        return model


def _with_labels(metric: Any, *labels: str | int) -> Any:
    """The metric with these labels, which prometheus_client looks for under a lock each time."""
    return metric.labels(*labels)
