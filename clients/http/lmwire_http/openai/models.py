"""GET /v1/models, and GET /v1/models/{model}, also in the form that Codex CLI reads."""

from typing import Final, Literal

from msgspec import UNSET, Struct, UnsetType

from ..http.context import RequestContext
from ..http.endpoint import Json, Reply, endpoint
from ..pool import LoadProgress, ModelState, ServedModel

_INSTRUCTIONS: Final = """\
You are a coding agent in the user's terminal. You share a folder with the user, and you work on it with tools.

- Look at the files that matter before you change them. Search with `rg` if it is there.
- Change only what the task needs, in the style of the code around it. Edit files with `apply_patch`.
- Check your work: run the tests or the program.
- Continue until the task is done. Ask only if you cannot go on without an answer.
- At the end, say in a few sentences what you did, and name the files.
"""
_TOOL_OUTPUT_TOKENS: Final = 10_000


class TruncationPolicy(Struct, kw_only=True, frozen=True):
    """The part of a tool's output that the model sees."""

    mode: Literal["tokens"] = "tokens"
    limit: int = _TOOL_OUTPUT_TOKENS


class CodexModel(Struct, kw_only=True):
    """A model as Codex describes it. It refuses the whole list if a field is absent that it needs."""

    slug: str
    display_name: str
    description: None = None
    base_instructions: str = _INSTRUCTIONS
    """The system prompt. Codex has one of its own only for models that it does not find in the list."""
    context_window: int | None
    """Context length in tokens; null if unknown."""
    input_modalities: list[Literal["text", "image"]]
    shell_type: Literal["default"] = "default"
    apply_patch_tool_type: Literal["freeform"] = "freeform"
    supports_parallel_tool_calls: bool = True
    supported_reasoning_levels: list[None] = []
    """None: the chat template decides whether the model reasons."""
    support_verbosity: bool = False
    truncation_policy: TruncationPolicy = TruncationPolicy()
    experimental_supported_tools: list[str] = []
    visibility: Literal["list"] = "list"
    supported_in_api: bool = True
    priority: int
    """Place in the list; Codex starts with the first."""


def codex_models(models: list[ServedModel]) -> list[CodexModel]:
    """Return the models that can chat, as far as is known, in their order."""
    return [_codex_model(served, place) for place, served in enumerate(filter(_may_chat, models))]


def _may_chat(served: ServedModel) -> bool:
    return served.loaded is None or "chat" in served.loaded.capabilities


def _codex_model(served: ServedModel, place: int) -> CodexModel:
    sees = served.loaded is not None and "images" in served.loaded.capabilities
    return CodexModel(
        slug=served.id,
        display_name=served.id,
        context_window=served.context_len,
        input_modalities=["text", "image"] if sees else ["text"],
        priority=place,
    )


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
    """All models: those that the operator has named, then loaded ones."""

    object: Literal["list"] = "list"
    data: list[Model]
    models: list[CodexModel]
    """The same models for Codex CLI, without those that cannot chat."""


@endpoint("GET", "/v1/models", response_type=Models)
async def list_models(context: RequestContext, _: None) -> Reply:
    """List the models."""
    served = await context.state.pool.served_models()
    return Json(Models(data=[*map(_to_model, served)], models=codex_models(served)))


@endpoint("GET", "/v1/models/{model:path}", response_type=Model)
async def get_model(context: RequestContext, _: None) -> Reply:
    """Describe a model."""
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
