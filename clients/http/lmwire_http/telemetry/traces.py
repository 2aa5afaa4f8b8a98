"""Traces for OpenTelemetry: one span for each request, sent to a collector by OTLP over HTTP.

A span is made when its request has ended. So tracing costs a request nothing before its last byte. The libraries are
those of the extra `tracing`, and are imported only if a collector is named. Spans contain no prompts and no answers.
"""

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPMethod
from importlib.util import find_spec
from time import time_ns
from typing import TYPE_CHECKING, Final, TypeAlias

from lmwire_protocol import __version__
from lmwire_protocol.extras import not_installed

from .logs import join_within, redact

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

OPERATIONS: Final = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "chat",
    "/v1/messages": "chat",
    "/api/chat": "chat",
    "/v1/completions": "text_completion",
    "/api/generate": "text_completion",
    "/infill": "text_completion",
    "/v1/embeddings": "embeddings",
    "/api/embed": "embeddings",
    "/api/embeddings": "embeddings",
    "/v1/rerank": "rerank",
    "/v2/rerank": "rerank",
    "/v1/audio/speech": "speech",
    "/v1/audio/transcriptions": "transcription",
}
"""`gen_ai.operation.name` by path. The names after `embeddings` are lmwire's own: the conventions have none."""
_ENDPOINT_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_MAX_TEXT: Final = 256
"""Longest text from a client in a span, in characters."""
FLUSH_S: Final = 5.0
"""Time at the end of the server for the last spans to be sent, in seconds."""
_log = logging.getLogger("lmwire_http")

_Value: TypeAlias = str | int | float | Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRequest:
    """Facts about a request for its span."""

    id: str
    headers: Mapping[str, str]
    """The request's headers, with names in lower case."""
    method: str
    path: str
    """The endpoint's path, not the client's."""
    status: int
    """The HTTP status, as in the log."""
    error_code: str | None
    seconds: float
    """Time from the request's head to the end of its response."""
    queued_s: float | None
    """Time in the queue of the model, in seconds; None if it never left the queue, or needed no worker."""
    first_token_s: float | None
    """Time from the request's head to its first token, in seconds."""
    requested_model: str
    model: str
    """The name of the model that served it; empty if none did."""
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    finish_reasons: Sequence[str]


def can_trace() -> bool:
    """Return whether the libraries of the extra `tracing` are installed."""
    try:
        return all(find_spec(name) for name in ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"))
    except ModuleNotFoundError:  # of a parent
        return False


def make_tracer(endpoint: str | None, keys: Sequence[str]) -> "Tracer | None":
    """Return the tracer for a collector, or None without one. A tracer that cannot start leaves a line in the log.

    Args:
        endpoint: The collector's base URL; that of the standard variables (`OTEL_EXPORTER_OTLP_ENDPOINT`) if None.
        keys: API keys to remove from the spans.
    """
    if endpoint is None and not _is_wanted(os.environ):
        return None
    if not can_trace():
        _log.warning("no traces are sent: %s", not_installed("opentelemetry-sdk", "tracing"))
        return None
    try:
        return Tracer(endpoint, keys)
    except ValueError as error:
        _log.warning("no traces are sent: a variable of OpenTelemetry (OTEL_...) is wrong: %s", error)
        return None


class Tracer:
    """Sender of spans, in a thread of its own. Its queue is bounded: further spans are dropped.

    Args:
        endpoint: The collector's base URL; that of the standard variables if None.
        keys: API keys to remove from the spans.

    Raises:
        ValueError: A standard variable has an invalid value.
    """

    def __init__(self, endpoint: str | None, keys: Sequence[str]) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        url = f"{endpoint.rstrip('/')}/v1/traces" if endpoint else None
        self._provider = TracerProvider(resource=_make_resource(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url)))
        self._tracer = self._provider.get_tracer("lmwire", __version__)
        self._propagator = TraceContextTextMapPropagator()
        self._keys = keys

    def record(self, request: FinishedRequest) -> None:
        """Queue the span of a request. It continues the trace of the request's `traceparent`, if there is one."""
        from opentelemetry.trace import SpanKind, Status, StatusCode

        now_ns = time_ns()
        span = self._tracer.start_span(
            f"{_known_method(request)} {request.path}",
            context=self._propagator.extract(request.headers),
            kind=SpanKind.SERVER,
            attributes=self._attributes(request),
            start_time=now_ns - round(request.seconds * 1e9),
        )
        if request.status >= 500:  # OpenTelemetry's conventions for servers leave out mistakes of clients
            span.set_status(Status(StatusCode.ERROR, request.error_code))
        span.end(now_ns)

    def close(self) -> None:
        """Send the waiting spans, if the collector takes them in time."""
        # The provider's own limit is 30 s, and cannot be changed.
        closing = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        closing.start()
        join_within(closing, FLUSH_S)

    def _attributes(self, request: FinishedRequest) -> dict[str, _Value]:
        attributes: dict[str, _Value | None] = {
            "http.request.method": _known_method(request),
            "http.route": request.path,
            "http.response.status_code": request.status,
            "error.type": request.error_code,
            "lmwire.request_id": request.id,
            "lmwire.queue_seconds": request.queued_s,
        }
        if request.requested_model or request.model:
            attributes |= self._model_attributes(request)
        return {name: value for name, value in attributes.items() if value is not None}

    def _model_attributes(self, request: FinishedRequest) -> dict[str, _Value | None]:
        has_tokens = bool(request.prompt_tokens or request.completion_tokens)
        return {
            "gen_ai.provider.name": "lmwire",
            "gen_ai.operation.name": OPERATIONS.get(request.path),
            "gen_ai.request.model": self._clean(request.requested_model) or None,
            "gen_ai.response.model": self._clean(request.model) if request.queued_s is not None else None,
            "gen_ai.response.finish_reasons": request.finish_reasons or None,
            "gen_ai.response.time_to_first_chunk": request.first_token_s,
            "gen_ai.usage.input_tokens": request.prompt_tokens if has_tokens else None,
            "gen_ai.usage.cache_read.input_tokens": request.cached_tokens if has_tokens else None,
            "gen_ai.usage.output_tokens": request.completion_tokens if has_tokens else None,
        }

    def _clean(self, text: str) -> str:
        """Return a client's text without API keys, as valid Unicode: one bad text would lose its whole batch."""
        return redact(text, self._keys).encode("utf-8", "backslashreplace").decode()[:_MAX_TEXT]


def _known_method(request: FinishedRequest) -> str:
    """Return the HTTP method, or what the conventions have for one that a client made up."""
    return request.method if request.method in HTTPMethod.__members__ else "_OTHER"


def _is_wanted(environment: Mapping[str, str]) -> bool:
    """Return whether the standard variables name a collector, and do not turn traces off."""
    return (
        any(environment.get(name) for name in _ENDPOINT_VARIABLES)
        and environment.get("OTEL_TRACES_EXPORTER") != "none"
        and environment.get("OTEL_SDK_DISABLED", "").lower() != "true"
    )


def _make_resource() -> "Resource":
    """Return what all spans say about this server. The standard variables win."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    own = Resource.create({"service.name": "lmwire", "service.version": __version__})
    return own.merge(OTELResourceDetector().detect())
