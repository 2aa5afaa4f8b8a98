"""GET /v1/models, and one of them."""

import os
from typing import Final, Literal

from msgspec import UNSET, Struct, UnsetType

from ..http.context import RequestContext
from ..http.endpoint import Endpoint
from ..http.replies import Json, Reply
from ..pool import ServedModel


class Model(Struct, kw_only=True):
    """A model that can be asked for. What OpenAI's API does not have of one comes last."""

    id: str
    object: Literal["model"] = "model"
    created: int
    """When it was put where it is, in seconds since 1970; 0 when that is not known."""
    owned_by: Literal["lmwire"] = "lmwire"
    context_length: int | UnsetType = UNSET
    """Tokens of prompt and answer together, if that is known."""
    max_model_len: int | UnsetType = UNSET
    """The same, by another server's name for it."""
    loaded: bool
    """Whether it is in memory."""
    capabilities: list[str] | UnsetType = UNSET
    """What it can do, once it has been loaded: `chat`, `generate`, `embed`, `transcribe`, `images` and others."""


class Models(Struct, kw_only=True):
    """All of them: those in memory first."""

    object: Literal["list"] = "list"
    data: list[Model]


async def _list(context: RequestContext, _: None) -> Reply:
    return Json(Models(data=[_model(served) for served in await context.state.pool.served_models()]))


async def _one(context: RequestContext, _: None) -> Reply:
    return Json(_model(await context.state.pool.served_model(context.path_params["model"])))


def _model(served: ServedModel) -> Model:
    context = served.context_len or UNSET
    return Model(
        id=served.id,
        created=_created(served.path),
        context_length=context,
        max_model_len=context,
        loaded=served.loaded is not None,
        capabilities=list(served.loaded.capabilities) if served.loaded else UNSET,
    )


def _created(path: str) -> int:
    try:
        return int(os.path.getmtime(path))
    except OSError:  # a name that only the worker knows
        return 0


MODELS: Final = Endpoint(
    method="GET", path="/v1/models", summary="The models that can be asked for.", handler=_list, response_type=Models
)
MODEL: Final = Endpoint(
    method="GET", path="/v1/models/{model:path}", summary="One of the models.", handler=_one, response_type=Model
)
