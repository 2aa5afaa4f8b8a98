"""GET /metrics, for Prometheus."""

from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Plain
from .worker_metrics import worker_metrics


async def _metrics(context: RequestContext, _: None) -> Plain:
    own = generate_latest(context.state.metrics.registry)
    return Plain(own + await worker_metrics(context.state.pool), CONTENT_TYPE_LATEST)


METRICS: Final = Endpoint(
    method="GET",
    path="/metrics",
    summary="Metrics of the server and its workers, in Prometheus' text format.",
    handler=_metrics,
    text_media_types=("text/plain",),
)
