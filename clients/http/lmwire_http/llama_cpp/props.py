"""GET /props: what editors and other clients of llama.cpp's server ask about it."""

from msgspec import UNSET, Struct, UnsetType

from lmwire_protocol import __version__

from ..http.context import RequestContext
from ..http.endpoint import Json, Reply, endpoint


class GenerationSettings(Struct, kw_only=True):
    """The settings of a request that sets none."""

    n_ctx: int | UnsetType = UNSET
    """Context length, in tokens; absent if unknown."""


class Modalities(Struct, kw_only=True):
    """The inputs that the model takes besides text."""

    vision: bool
    audio: bool


class Props(Struct, kw_only=True):
    """A model of the server. Fields of llama.cpp's server for which lmwire has no value are absent."""

    default_generation_settings: GenerationSettings
    total_slots: int | UnsetType = UNSET
    """Answers that the model works on at once; absent while it is not in memory."""
    model_alias: str
    model_path: str
    """The model's id, too: clients do not learn the server's folders."""
    modalities: Modalities | UnsetType = UNSET
    """Absent while the model is not in memory."""
    build_info: str


@endpoint("GET", "/props", response_type=Props)
async def get_props(context: RequestContext, _: None) -> Reply:
    """Describe a model, as llama.cpp's server does."""
    served = await context.state.pool.served_model(context.query.get("model", ""))
    context.model = served.id
    loaded = served.loaded
    abilities = loaded.capabilities if loaded else []
    return Json(
        Props(
            default_generation_settings=GenerationSettings(n_ctx=served.context_len or UNSET),
            total_slots=(loaded and loaded.batch_size) or UNSET,
            model_alias=served.id,
            model_path=served.id,
            modalities=Modalities(vision="images" in abilities, audio="sounds" in abilities) if loaded else UNSET,
            build_info=f"lmwire-{__version__}",
        )
    )
