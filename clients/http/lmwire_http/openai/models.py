"""GET /v1/models, and GET /v1/models/{model}."""

from typing import Final, Literal

from msgspec import UNSET, Struct, UnsetType

from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Json, Reply
from ..pool import LoadProgress, ModelState, ServedModel
from .codex_models import CodexModel, codex_models


class Model(Struct, kw_only=True):
    """A model that requests can name. Fields that OpenAI's API lacks come last."""

    id: str
    object: Literal["model"] = "model"
    created: int
    """Time of the model files, in seconds since 1970; 0 if unknown."""
    owned_by: Literal["lmwire"] = "lmwire"
    context_length: int | UnsetType = UNSET
    """Context length in tokens; absent if unknown."""
    max_model_len: int | UnsetType = UNSET
    """The same value, by vLLM's name for it."""
    loaded: bool
    """True while the model is in memory."""
    state: ModelState
    load_progress: LoadProgress | UnsetType = UNSET
    """Progress of the load; absent if the model is not being loaded, or waits for memory."""
    capabilities: list[str] | UnsetType = UNSET
    """Capabilities of a loaded model: `chat`, `generate`, `embed`, `transcribe`, `images` and others."""


class Models(Struct, kw_only=True):
    """All models, loaded ones first."""

    object: Literal["list"] = "list"
    data: list[Model]
    models: list[CodexModel]
    """The same models for Codex CLI, without those that cannot chat."""


async def _list_models(context: RequestContext, _: None) -> Reply:
    served = await context.state.pool.served_models()
    return Json(Models(data=[*map(_to_model, served)], models=codex_models(served)))


async def _get_model(context: RequestContext, _: None) -> Reply:
    return Json(_to_model(await context.state.pool.served_model(context.path_params["model"])))


def _to_model(served: ServedModel) -> Model:
    context = served.context_len or UNSET
    return Model(
        id=served.id,
        created=served.created,
        context_length=context,
        max_model_len=context,
        loaded=served.loaded is not None,
        state=served.state,
        load_progress=served.load_progress or UNSET,
        capabilities=list(served.loaded.capabilities) if served.loaded else UNSET,
    )


MODELS: Final = Endpoint(
    method="GET",
    path="/v1/models",
    summary="List the models.",
    handler=_list_models,
    response_type=Models,
)
MODEL: Final = Endpoint(
    method="GET", path="/v1/models/{model:path}", summary="Describe a model.", handler=_get_model, response_type=Model
)
