"""GET /metrics, for Prometheus: the server's own counters, and those of the workers, which are asked each time."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from lmwire_protocol import events

from ..http.context import RequestContext
from ..http.endpoint import Plain, endpoint

if TYPE_CHECKING:
    from ..pool import Pool
    from ..pool.status import ModelStatus

_STATS_TIMEOUT_S: Final = 2.0
_REPLICA: Final = ("model", "replica")
Stats: TypeAlias = dict[str, list[events.StatsDone | None]]


async def worker_metrics(pool: "Pool") -> bytes:
    """Return the workers' metrics in Prometheus' text format. A worker that hangs counts as down."""
    stats = await pool.ask_workers(lambda worker: worker.stats(timeout=_STATS_TIMEOUT_S))
    registry = CollectorRegistry()
    registry.register(_WorkerCollector(pool.statuses(), stats))
    return generate_latest(registry)


class _WorkerCollector:
    """A collector of one reading."""

    def __init__(self, models: "list[ModelStatus]", stats: Stats) -> None:
        self._models, self._stats = models, stats

    def collect(self) -> Iterator[Metric]:
        yield from self._model_metrics()
        yield from self._process_metrics()
        yield from self._work_metrics()
        yield from self._cache_metrics()

    def _model_metrics(self) -> Iterator[Metric]:
        loaded = GaugeMetricFamily("lmwire_model_loaded", "1 if the model is in memory.", labels=["model"])
        waiting = GaugeMetricFamily(
            "lmwire_model_requests_waiting", "Requests that wait for the model.", labels=["model"]
        )
        for model in self._models:
            loaded.add_metric([model.id], model.loaded is not None)
            waiting.add_metric([model.id], model.waiting)
        yield from (loaded, waiting)

    def _process_metrics(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("lmwire_worker_up", "1 if the worker runs and answers.", labels=_REPLICA)
        running = GaugeMetricFamily("lmwire_worker_requests_in_flight", "Requests on the worker.", labels=_REPLICA)
        restarts = CounterMetricFamily("lmwire_worker_restarts", "Workers that replaced dead ones.", labels=_REPLICA)
        deaths = CounterMetricFamily("lmwire_worker_deaths", "Workers that died.", labels=_REPLICA)
        hangs = CounterMetricFamily("lmwire_worker_hangs", "Workers that hung and were ended.", labels=_REPLICA)
        for model in self._models:
            answers = self._stats.get(model.id, [])
            for number, replica in enumerate(model.replicas):
                labels = [model.id, str(number)]
                up.add_metric(labels, number < len(answers) and answers[number] is not None)
                running.add_metric(labels, replica.in_flight)
                restarts.add_metric(labels, replica.restarts)
                deaths.add_metric(labels, replica.deaths)
                hangs.add_metric(labels, replica.hangs)
        yield from (up, running, restarts, deaths, hangs)

    def _work_metrics(self) -> Iterator[Metric]:
        uptime = GaugeMetricFamily("lmwire_worker_uptime_seconds", "Seconds since the worker's start.", labels=_REPLICA)
        active = GaugeMetricFamily("lmwire_worker_requests_active", "Requests in progress.", labels=_REPLICA)
        queued = GaugeMetricFamily("lmwire_worker_requests_queued", "Requests in the worker's queue.", labels=_REPLICA)
        ended = CounterMetricFamily(
            "lmwire_worker_requests", "Finished requests by outcome.", labels=(*_REPLICA, "outcome")
        )
        tokens = CounterMetricFamily(
            "lmwire_worker_tokens", "Tokens, including those of cancelled requests.", labels=(*_REPLICA, "kind")
        )
        memory = GaugeMetricFamily(
            "lmwire_worker_memory_bytes", "Memory of the model library.", labels=(*_REPLICA, "kind")
        )
        unread = GaugeMetricFamily(
            "lmwire_worker_outbox_bytes", "Output that the server has not read.", labels=_REPLICA
        )
        for labels, stats in self._replies():
            uptime.add_metric(labels, stats.uptime_ms / 1000)
            active.add_metric(labels, stats.requests.active)
            queued.add_metric(labels, stats.requests.queued)
            ended.add_metric([*labels, "done"], stats.requests.done)
            ended.add_metric([*labels, "error"], stats.requests.errors)
            ended.add_metric([*labels, "cancelled"], stats.requests.cancelled)
            tokens.add_metric([*labels, "prompt"], stats.tokens.prompt)
            tokens.add_metric([*labels, "completion"], stats.tokens.completion)
            memory.add_metric([*labels, "active"], stats.memory.active_bytes)
            memory.add_metric([*labels, "cache"], stats.memory.cache_bytes)
            memory.add_metric([*labels, "peak"], stats.memory.peak_bytes)
            unread.add_metric(labels, stats.outbox_bytes)
        yield from (uptime, active, queued, ended, tokens, memory, unread)

    def _cache_metrics(self) -> Iterator[Metric]:
        bytes = GaugeMetricFamily("lmwire_prompt_cache_bytes", "Size of the prefix cache.", labels=_REPLICA)
        budget = GaugeMetricFamily(
            "lmwire_prompt_cache_budget_bytes", "Largest size of the prefix cache.", labels=_REPLICA
        )
        entries = GaugeMetricFamily("lmwire_prompt_cache_entries", "Entries of the prefix cache.", labels=_REPLICA)
        hits = CounterMetricFamily("lmwire_prompt_cache_hits", "Requests with a cached prefix.", labels=_REPLICA)
        misses = CounterMetricFamily("lmwire_prompt_cache_misses", "Requests without a cached prefix.", labels=_REPLICA)
        saved = CounterMetricFamily(
            "lmwire_prompt_cache_saved_tokens", "Prompt tokens that were not computed again.", labels=_REPLICA
        )
        evictions = CounterMetricFamily("lmwire_prompt_cache_evictions", "Evicted cache entries.", labels=_REPLICA)
        for labels, stats in self._replies():
            if cache := stats.cache:
                bytes.add_metric(labels, cache.bytes)
                budget.add_metric(labels, cache.budget_bytes)
                entries.add_metric(labels, cache.entries)
                hits.add_metric(labels, cache.hits)
                misses.add_metric(labels, cache.misses)
                saved.add_metric(labels, cache.saved_tokens)
                evictions.add_metric(labels, cache.evictions)
        yield from (bytes, budget, entries, hits, misses, saved, evictions)

    def _replies(self) -> Iterator[tuple[list[str], events.StatsDone]]:
        for model, replicas in self._stats.items():
            for number, stats in enumerate(replicas):
                if stats:
                    yield [model, str(number)], stats


@endpoint("GET", "/metrics", text_media_types=("text/plain",))
async def get_metrics(context: RequestContext, _: None) -> Plain:
    """Return the metrics of the server and its workers, in Prometheus' text format."""
    own = generate_latest(context.state.metrics.registry)
    return Plain(own + await worker_metrics(context.state.pool), CONTENT_TYPE_LATEST)
