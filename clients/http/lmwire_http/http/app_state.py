"""What all calls share."""

from dataclasses import dataclass

from ..pool import Pool
from ..pool.readiness import Readiness
from ..pool.startup import Startup
from ..settings import Settings
from ..telemetry.metrics import Metrics
from .in_flight import Running
from .response_store import Stored


@dataclass(frozen=True, slots=True)
class Service:
    """The server's parts."""

    settings: Settings
    pool: Pool
    metrics: Metrics
    running: Running
    startup: Startup
    readiness: Readiness
    responses: Stored
    """Of /v1/responses."""


def make_service(settings: Settings) -> Service:
    """The parts for these settings; nothing is started."""
    parts = Pool(settings), Metrics(), Running(), Startup(), Readiness()
    return Service(settings, *parts, Stored(settings.stored))
