"""The state that all requests share."""

from dataclasses import dataclass

from ..pool import Pool
from ..pool.readiness import Readiness, Startup
from ..pool.status import ShowProgress, log_downloads
from ..settings import Settings
from ..telemetry.metrics import Metrics
from ..telemetry.traces import Tracer, make_tracer
from .body.work_thread import WorkThread
from .in_flight import InFlightRequests
from .response_store import ResponseStore
from .unknown_fields import IgnoredFieldLog


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
    )
