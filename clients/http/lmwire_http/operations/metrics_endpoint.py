"""`/metrics`, for Prometheus."""

from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from ..http.context import Call
from ..http.endpoint import Endpoint
from ..http.replies import Plain
from .worker_metrics import worker_figures


async def _metrics(call: Call, _: None) -> Plain:
    own = generate_latest(call.service.metrics.registry)
    return Plain(own + await worker_figures(call.service.pool), CONTENT_TYPE_LATEST)


METRICS: Final = Endpoint(
    method="GET",
    path="/metrics",
    summary="Figures of the server and of its workers, in Prometheus' text format.",
    serve=_metrics,
    texts=("text/plain",),
)
