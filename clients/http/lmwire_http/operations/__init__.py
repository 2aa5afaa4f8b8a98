"""Endpoints for operators: health, readiness, metrics and a page about the API."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .docs import DOCS
from .health import HEALTH, READY
from .metrics_endpoint import METRICS

ENDPOINTS: Final[Sequence[Endpoint]] = (HEALTH, READY, METRICS, *DOCS)
