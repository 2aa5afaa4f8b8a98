"""POST /v1/models/load and POST /v1/models/unload: models enter and leave memory when a client says so.

The requests and responses are those that llama-server's router and LM Studio share, with the fields of both.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from msgspec import UNSET, Struct, UnsetType

from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Json, Reply, endpoint
from ..inference.options import renamed

_LM_STUDIO: Final = "/api"
"""LM Studio's prefix of the same paths."""


class ModelRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A model to load or to unload."""

    model: str = ""
    """May be absent, or `default`, if exactly one model is served. LM Studio's name of it is `instance_id`."""


class ModelLoaded(Struct, kw_only=True):
    """The model is in memory."""

    model: str
    """The model's id."""
    instance_id: str
    """The same, by LM Studio's name for it."""
    type: Literal["llm", "embedding", "transcription"]
    status: Literal["loaded"] = "loaded"
    success: Literal[True] = True
    load_time_seconds: float
    """Time that the request waited for the model; almost 0 if it was in memory."""
    memory_bytes: int | UnsetType = UNSET
    """Memory that the model takes; absent if its worker does not report it."""


class ModelUnloaded(Struct, kw_only=True):
    """The model is not in memory."""

    model: str
    """The model's id."""
    instance_id: str
    """The same, by LM Studio's name for it."""
    status: Literal["unloaded"] = "unloaded"
    success: Literal[True] = True
    freed_bytes: int | UnsetType = UNSET
    """Memory that the model took; 0 if it was not in memory, absent if its worker did not report it."""


@endpoint("POST", "/v1/models/load", aliases={"instance_id": renamed("model")}, response_type=ModelLoaded)
async def load_model(context: RequestContext, body: ModelRequest) -> Reply:
    """Load a model into memory."""
    context.model = body.model
    loaded = await context.state.pool.load(body.model)
    context.model = loaded.model.id
    return Json(
        ModelLoaded(
            model=loaded.model.id,
            instance_id=loaded.model.id,
            type=_type_of(loaded.model.loaded.capabilities if loaded.model.loaded else ()),
            load_time_seconds=round(loaded.seconds, 3),
            memory_bytes=UNSET if loaded.memory_bytes is None else loaded.memory_bytes,
        )
    )


@endpoint(
    "POST",
    "/v1/models/unload",
    aliases={"instance_id": renamed("model")},
    response_type=ModelUnloaded,
    error_statuses=(409,),
)
async def unload_model(context: RequestContext, body: ModelRequest) -> Reply:
    """Remove a model from memory."""
    context.model = body.model
    unloaded = await context.state.pool.unload(body.model)
    context.model = unloaded.id
    freed = UNSET if unloaded.freed_bytes is None else unloaded.freed_bytes
    return Json(ModelUnloaded(model=unloaded.id, instance_id=unloaded.id, freed_bytes=freed))


def _type_of(capabilities: Sequence[str]) -> Literal["llm", "embedding", "transcription"]:
    if "generate" in capabilities:
        return "llm"
    return "embedding" if "embed" in capabilities else "transcription"


MODEL_MEMORY: Final[Sequence[Endpoint]] = (
    load_model,
    unload_model,
    *(replace(each, path=_LM_STUDIO + each.path) for each in (load_model, unload_model)),
)
