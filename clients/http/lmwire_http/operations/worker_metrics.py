"""Metrics of the workers, read from them for each request to /metrics."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from lmwire_protocol import events

if TYPE_CHECKING:
    from ..pool import Pool
    from ..pool.status import ModelStatus

_STATS_TIMEOUT_S: Final = 2.0
_REPLICA: Final = ("model", "replica")
Stats: TypeAlias = dict[str, list[events.StatsDone | None]]


async def worker_metrics(pool: "Pool") -> bytes:
    """Return the workers' metrics in Prometheus' text format. A worker that hangs counts as down."""
    stats = await pool.stats(_STATS_TIMEOUT_S)
    registry = CollectorRegistry()
    registry.register(_WorkerCollector(pool.statuses(), stats))
    return generate_latest(registry)


class _WorkerCollector:
    """A collector of one reading."""

    def __init__(self, residents: "list[ModelStatus]", stats: Stats) -> None:
        self._residents, self._stats = residents, stats

    def collect(self) -> Iterator[Metric]:
        yield from self._of_models()
        yield from self._of_processes()
        yield from self._of_work()
        yield from self._of_caches()

    def _of_models(self) -> Iterator[Metric]:
        loaded = GaugeMetricFamily(
            "lmwire_model_loaded", "Whether a request would be served at once.", labels=["model"]
        )
        waiting = GaugeMetricFamily("lmwire_model_requests_waiting", "Requests that wait for it.", labels=["model"])
        for resident in self._residents:
            loaded.add_metric([resident.id], resident.loaded is not None)
            waiting.add_metric([resident.id], resident.waiting)
        yield from (loaded, waiting)

    def _of_processes(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("lmwire_worker_up", "Whether it lives and answers.", labels=_REPLICA)
        running = GaugeMetricFamily("lmwire_worker_requests_in_flight", "Requests on it.", labels=_REPLICA)
        restarts = CounterMetricFamily("lmwire_worker_restarts", "Workers in place of dead ones.", labels=_REPLICA)
        deaths = CounterMetricFamily("lmwire_worker_deaths", "Workers that ended by themselves.", labels=_REPLICA)
        hangs = CounterMetricFamily("lmwire_worker_hangs", "Those of them that hung, and were ended.", labels=_REPLICA)
        for resident in self._residents:
            answers = self._stats.get(resident.id, [])
            for number, replica in enumerate(resident.replicas):
                labels = [resident.id, str(number)]
                up.add_metric(labels, number < len(answers) and answers[number] is not None)
                running.add_metric(labels, replica.in_flight)
                restarts.add_metric(labels, replica.restarts)
                deaths.add_metric(labels, replica.deaths)
                hangs.add_metric(labels, replica.hangs)
        yield from (up, running, restarts, deaths, hangs)

    def _of_work(self) -> Iterator[Metric]:
        uptime = GaugeMetricFamily("lmwire_worker_uptime_seconds", "Since it was started.", labels=_REPLICA)
        active = GaugeMetricFamily("lmwire_worker_requests_active", "Requests it works on.", labels=_REPLICA)
        queued = GaugeMetricFamily("lmwire_worker_requests_queued", "Requests in its queue.", labels=_REPLICA)
        ended = CounterMetricFamily(
            "lmwire_worker_requests", "Requests that ended, by how.", labels=(*_REPLICA, "outcome")
        )
        tokens = CounterMetricFamily(
            "lmwire_worker_tokens", "Tokens, those of cancelled requests too.", labels=(*_REPLICA, "kind")
        )
        memory = GaugeMetricFamily("lmwire_worker_memory_bytes", "Of the model library.", labels=(*_REPLICA, "kind"))
        unread = GaugeMetricFamily("lmwire_worker_outbox_bytes", "Output that was not read yet.", labels=_REPLICA)
        for labels, stats in self._answered():
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

    def _of_caches(self) -> Iterator[Metric]:
        bytes = GaugeMetricFamily("lmwire_prompt_cache_bytes", "What is kept of prompts.", labels=_REPLICA)
        budget = GaugeMetricFamily("lmwire_prompt_cache_budget_bytes", "What may be kept.", labels=_REPLICA)
        entries = GaugeMetricFamily("lmwire_prompt_cache_entries", "Pieces of prompts.", labels=_REPLICA)
        hits = CounterMetricFamily("lmwire_prompt_cache_hits", "Requests that began with something.", labels=_REPLICA)
        misses = CounterMetricFamily("lmwire_prompt_cache_misses", "Requests that began with nothing.", labels=_REPLICA)
        saved = CounterMetricFamily("lmwire_prompt_cache_saved_tokens", "Not processed again.", labels=_REPLICA)
        evictions = CounterMetricFamily("lmwire_prompt_cache_evictions", "Pieces given up.", labels=_REPLICA)
        for labels, stats in self._answered():
            if cache := stats.cache:
                bytes.add_metric(labels, cache.bytes)
                budget.add_metric(labels, cache.budget_bytes)
                entries.add_metric(labels, cache.entries)
                hits.add_metric(labels, cache.hits)
                misses.add_metric(labels, cache.misses)
                saved.add_metric(labels, cache.saved_tokens)
                evictions.add_metric(labels, cache.evictions)
        yield from (bytes, budget, entries, hits, misses, saved, evictions)

    def _answered(self) -> Iterator[tuple[list[str], events.StatsDone]]:
        for model, replicas in self._stats.items():
            for number, stats in enumerate(replicas):
                if stats:
                    yield [model, str(number)], stats
