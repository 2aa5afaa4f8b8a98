"""Endpoints for operators: health, readiness, metrics, the models in memory, and a page about the API."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .docs import DOCS
from .downloads import DOWNLOADS
from .health import HEALTH, READY
from .metrics import METRICS
from .model_memory import MODEL_MEMORY

ENDPOINTS: Final[Sequence[Endpoint]] = (HEALTH, READY, METRICS, *MODEL_MEMORY, *DOWNLOADS, *DOCS)
