"""What all calls share."""

from dataclasses import dataclass

from .operations.metrics import Metrics
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
