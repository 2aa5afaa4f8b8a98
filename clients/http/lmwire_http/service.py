"""What all calls share."""

from dataclasses import dataclass

from .operations.metrics import Metrics
from .operations.readiness import Readiness
from .operations.startup import Startup
from .pool import Pool
from .running import Running
from .settings import Settings
from .stored import Stored


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
