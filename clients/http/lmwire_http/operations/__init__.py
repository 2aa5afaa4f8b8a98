"""Endpoints for operators: health, readiness, metrics, the models in memory, and a page about the API."""

from collections.abc import Sequence
from typing import Final

from ..http.endpoint import Endpoint
from .docs import DOCS
from .downloads import DOWNLOADS
from .health import get_health, get_readiness
from .metrics import get_metrics
from .model_memory import MODEL_MEMORY

ENDPOINTS: Final[Sequence[Endpoint]] = (get_health, get_readiness, get_metrics, *MODEL_MEMORY, *DOWNLOADS, *DOCS)
