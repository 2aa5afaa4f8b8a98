"""GET /api/tags, the models that requests can name, and GET /api/ps, those in memory."""

from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Json
from ..http.error_formats import OLLAMA_ERRORS
from ..pool import ServedModel
from .model_details import ModelDetails, details_of, digest_of, modified_at

_FOR_EVER: Final = timedelta(microseconds=2**63 // 1000)
"""The longest duration in Go, which Ollama adds to the time for models that stay."""


class ListedModel(Struct, kw_only=True):
    """A model that requests can name."""

    name: str
    model: str
    """The same as `name`."""
    modified_at: datetime
    size: int
    """Size of the model files in bytes; 0 if unknown."""
    digest: str
    details: ModelDetails


class ListedModels(Struct, kw_only=True):
    """All models, loaded ones first."""

    models: list[ListedModel]


class LoadedModel(Struct, kw_only=True):
    """A model in memory."""

    name: str
    model: str
    """The same as `name`."""
    size: int
    """Memory of the weights in all workers, in bytes."""
    size_vram: int
    """The same as `size`: a Mac has one memory."""
    digest: str
    details: ModelDetails
    expires_at: datetime
    """Time of the unload if no request comes. For a model that stays, it is in 292 years."""
    context_length: int


class LoadedModels(Struct, kw_only=True):
    """The models in memory."""

    models: list[LoadedModel]


async def _list_models(context: RequestContext, _: None) -> Json:
    return Json(ListedModels(models=[_to_listed(served) for served in await context.state.pool.served_models()]))


async def _list_loaded(context: RequestContext, _: None) -> Json:
    pool = context.state.pool
    statuses = {status.id: status for status in pool.statuses()}
    models = [
        _to_loaded(served, statuses[served.id].remaining_s, len(statuses[served.id].replicas))
        for served in await pool.served_models()
        if served.loaded and served.id in statuses
    ]
    return Json(LoadedModels(models=models))


def _to_listed(served: ServedModel) -> ListedModel:
    return ListedModel(
        name=served.id,
        model=served.id,
        modified_at=modified_at(served),
        size=served.size_bytes,
        digest=digest_of(served),
        details=details_of(served),
    )


def _to_loaded(served: ServedModel, remaining_s: float | None, replicas: int) -> LoadedModel:
    size = served.loaded.weights_bytes * replicas if served.loaded else 0
    return LoadedModel(
        name=served.id,
        model=served.id,
        size=size,
        size_vram=size,
        digest=digest_of(served),
        details=details_of(served),
        expires_at=datetime.now(UTC) + (_FOR_EVER if remaining_s is None else _duration(remaining_s)),
        context_length=served.context_len or 0,
    )


def _duration(seconds: float) -> timedelta:
    return timedelta(seconds=min(seconds, _FOR_EVER.total_seconds()))


TAGS: Final = Endpoint(
    method="GET",
    path="/api/tags",
    summary="List the models.",
    handler=_list_models,
    error_format=OLLAMA_ERRORS,
    response_type=ListedModels,
)
PS: Final = Endpoint(
    method="GET",
    path="/api/ps",
    summary="List the models in memory.",
    handler=_list_loaded,
    error_format=OLLAMA_ERRORS,
    response_type=LoadedModels,
)
