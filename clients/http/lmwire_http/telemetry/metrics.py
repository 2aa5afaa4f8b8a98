"""Counters of the server, for Prometheus."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from lmwire_protocol import events

_TOKEN_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
_REQUEST_BUCKETS_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_MAX_MODELS: Final = 1000
"""Number of models with labels of their own. Clients choose names, and each label takes memory for good."""
_OTHER: Final = "other"


class Metrics:
    """The server's counters. The workers' own are read from the workers."""

    def __init__(self) -> None:
        disable_created_metrics()  # they double the number of series
        self.registry = CollectorRegistry()
        self._with_labels = cache(_labelled)
        self._served: set[str] = set()
        self._running = Gauge("lmwire_http_requests_in_flight", "Requests in flight.", registry=self.registry)
        self._requests = Counter(
            "lmwire_http_requests", "Requests answered.", ["path", "model", "status"], registry=self.registry
        )
        self._tokens = Counter("lmwire_tokens", "Tokens.", ["model", "kind"], registry=self.registry)
        self._request_s = self._histogram(
            "lmwire_http_request_duration_seconds",
            "Seconds from a request's head to the end of its response.",
            "path",
            _REQUEST_BUCKETS_S,
        )
        self._first_token_s = self._histogram(
            "lmwire_time_to_first_token_seconds",
            "Seconds from a request's head to its first token.",
            "model",
            _REQUEST_BUCKETS_S,
        )
        self._between_tokens_s = self._histogram(
            "lmwire_inter_token_seconds", "Seconds between tokens.", "model", _TOKEN_BUCKETS_S
        )
        self._queue_s = self._histogram(
            "lmwire_queue_seconds", "Seconds in the queue of a loaded model.", "model", _REQUEST_BUCKETS_S
        )

    def in_flight(self) -> AbstractContextManager[Any]:
        """Count a request as in flight while the block runs."""
        return self._running.track_inprogress()

    def request_finished(self, path: str, model: str, status: int, seconds: float) -> None:
        """Count a finished request.

        Args:
            path: The endpoint's path.
            model: The model's name.
            status: The HTTP status.
            seconds: Time from the request's head to the end of the response.
        """
        # A client may send any name: only names of models that a worker has served become labels.
        label = model if model in self._served else ""
        self._with_labels(self._requests, path, label, status).inc()
        self._with_labels(self._request_s, path).observe(seconds)

    def observe_queue_time(self, model: str, seconds: float) -> None:
        """Record the time that a request waited for a worker.

        Args:
            model: The model's id.
            seconds: Time in the queue.
        """
        self._with_labels(self._queue_s, self._model_label(model)).observe(seconds)

    def latency_histograms(self, model: str) -> tuple[Histogram, Histogram]:
        """Return a model's histograms of seconds to the first token and of seconds between tokens."""
        label = self._model_label(model)
        return self._with_labels(self._first_token_s, label), self._with_labels(self._between_tokens_s, label)

    def count_tokens(self, model: str, usage: events.Usage) -> None:
        """Count the tokens of a finished generation.

        Args:
            model: The model's id.
            usage: The worker's report.
        """
        label = self._model_label(model)
        for kind, count in (
            ("prompt", usage.prompt_tokens),
            ("cached", usage.cached_tokens),
            ("completion", usage.completion_tokens),
        ):
            self._with_labels(self._tokens, label, kind).inc(count)

    def _histogram(self, name: str, help: str, label: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, help, [label], buckets=buckets, registry=self.registry)

    def _model_label(self, model: str) -> str:
        """Return the label of a model that a worker serves."""
        if model not in self._served:
            if len(self._served) >= _MAX_MODELS:
                return _OTHER
            self._served.add(model)
        return model


def _labelled(metric: Any, *labels: str | int) -> Any:
    """Return the metric with these labels. The result is cached: prometheus_client looks it up under a lock."""
    return metric.labels(*labels)
