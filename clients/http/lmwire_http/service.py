"""What all calls share."""

from dataclasses import dataclass

from .operations.metrics import Metrics
from .operations.readiness import Readiness
from .operations.startup import Startup
from .pool import Pool
from .running import Running
from .settings import Settings


@dataclass(frozen=True, slots=True)
class Service:
    """The server's parts."""

    settings: Settings
    pool: Pool
    metrics: Metrics
    running: Running
    startup: Startup
    readiness: Readiness


def make_service(settings: Settings) -> Service:
    """The parts for these settings; nothing is started."""
    return Service(settings, Pool(settings), Metrics(), Running(), Startup(), Readiness())
