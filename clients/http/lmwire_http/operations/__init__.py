"""Endpoints for operators: health, readiness and metrics."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .health import HEALTH, READY
from .metrics_endpoint import METRICS

ENDPOINTS: Final[Sequence[Endpoint]] = (HEALTH, READY, METRICS)
