"""The state that all requests share, and the context of one request, as its endpoint sees it."""

from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import ParamSpec, Protocol, TypeVar

from lmwire.mcp import McpServers
from lmwire_protocol import events

from ..errors import ApiError
from ..pool import Lease, Pool
from ..pool.readiness import Readiness, Startup
from ..pool.status import ShowProgress, log_downloads
from ..settings import Settings
from ..telemetry.metrics import Metrics
from ..telemetry.traces import Tracer, make_tracer
from .body import WorkThread
from .response_store import ResponseStore
from .unknown_fields import IgnoredFieldLog, UnknownFields

P = ParamSpec("P")
T = TypeVar("T")


class Interruptible(Protocol):
    """A request that can be ended early."""

    def interrupt(self, error: ApiError) -> None:
        """End the request with this error."""
        ...


class InFlightRequests:
    """The requests in flight."""

    def __init__(self) -> None:
        self._requests: set[Interruptible] = set()

    @contextmanager
    def track(self, request: Interruptible) -> Generator[None]:
        """Count a request as in flight while the block runs."""
        self._requests.add(request)
        try:
            yield
        finally:
            self._requests.discard(request)

    def interrupt_all(self, error: ApiError) -> int:
        """End all requests with this error, and return their number."""
        interrupted = [*self._requests]
        for request in interrupted:
            request.interrupt(error)
        return len(interrupted)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """The parts of a server."""

    settings: Settings
    pool: Pool
    metrics: Metrics
    tracer: Tracer | None
    in_flight: InFlightRequests
    work_thread: WorkThread
    startup: Startup
    readiness: Readiness
    ignored_field_log: IgnoredFieldLog
    response_store: ResponseStore
    """Responses of /v1/responses that requests can continue."""
    show_progress: ShowProgress
    """Shows how far prefills have come."""
    mcp_servers: McpServers | None
    """Servers of tools; None if the operator has configured none."""


def make_app_state(settings: Settings, show_progress: ShowProgress = log_downloads) -> AppState:
    """Return the parts of a server. Nothing is started.

    Args:
        settings: The server's settings.
        show_progress: Shows how far loads and prefills have come.
    """
    pool, startup = Pool(settings, show_progress=show_progress), Startup()
    return AppState(
        settings=settings,
        pool=pool,
        metrics=Metrics(),
        tracer=make_tracer(settings.otlp_endpoint, settings.api_keys),
        in_flight=InFlightRequests(),
        work_thread=WorkThread(),
        startup=startup,
        readiness=Readiness(settings, pool, startup),
        ignored_field_log=IgnoredFieldLog(),
        response_store=ResponseStore(settings.max_stored_responses),
        show_progress=show_progress,
        mcp_servers=McpServers(settings.mcp_servers, settings.mcp_timeout_s) if settings.mcp_servers else None,
    )


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """A request whose body has been read."""

    id: str
    """The request's id, from its X-Request-ID header if it had a valid one."""
    state: AppState
    headers: Mapping[str, str]
    """The request's headers, with names in lower case."""
    path_params: Mapping[str, str]
    """Values of the path's variables."""
    query: Mapping[str, str]
    unknown_fields: UnknownFields
    """Collects the body's unknown fields."""
    key: int | None = None
    """Number of the request's API key, which owns what the request stores; None if the server has no keys."""
    client: Hashable = None
    """The client that sent the request; see `client_identity`."""
    is_large: bool = False
    """True if work on the whole body takes too long for the event loop."""
    started_at: float = field(default_factory=monotonic)
    """Time at which the request's head arrived, by `time.monotonic`."""
    model: str = ""
    """The model's name, for the log and the metrics; empty while it is unknown."""
    requested_model: str = ""
    """The model's name in the request, for the traces; empty if the request has none."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    """Tokens of all finished generations, for the log and the traces."""
    finish_reasons: list[str] = field(default_factory=list[str])
    """Why each finished answer ended, for the traces."""
    queued_s: float | None = None
    """Time in the queue of the model, in seconds, for the traces; None before a worker is leased."""
    first_token_s: float | None = None
    """Time from the request's head to its first token, in seconds, for the traces; None before it."""

    async def beside_loop(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Return the result of work on the whole body. If the body is large, a thread does it.

        Args:
            work: The work. It does not use the event loop.
            args: Its arguments.
            options: Its further arguments.
        """
        if not self.is_large:
            return work(*args, **options)
        return await self.state.work_thread.run(self.client, partial(work, *args, **options))

    def record_lease(self, lease: Lease) -> None:
        """Note the model that serves the request and the time in its queue, for the log, metrics and traces."""
        self.model = lease.model_id
        self.queued_s = max(lease.queued_s, self.queued_s or 0.0)
        self.state.metrics.observe_queue_time(lease.model_id, lease.queued_s)

    def record_result(self, result: events.ResultDone) -> None:
        """Count the tokens of a finished generation, and note why its answers ended."""
        self.finish_reasons += [answer.finish_reason for answer in result.choices or (result,)]
        self.record_usage(result.usage)

    def record_usage(self, usage: events.Usage) -> None:
        """Count the tokens of finished work, for the log, the metrics and the traces."""
        self.prompt_tokens += usage.prompt_tokens
        self.cached_tokens += usage.cached_tokens
        self.completion_tokens += usage.completion_tokens
        self.state.metrics.count_tokens(self.model, usage)
