"""The models: GET /api/tags lists all, GET /api/ps those in memory, and POST /api/show describes one. It loads nothing.

GET /api/version is here too: with it and with GET /, clients find out whether Ollama's API is served.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from lmwire import AsyncWorker
from lmwire_protocol import __version__, events

from ..http.context import RequestContext
from ..http.endpoint import Json, endpoint
from ..http.error_formats import OLLAMA_ERRORS
from ..inference.options import renamed
from ..inference.template_support import refused_field
from ..pool import ServedModel
from .model_files import Weights, read_licence, read_weights, short_number
from .request import without_tag

Capability: TypeAlias = Literal["completion", "tools", "thinking", "vision", "audio", "insert", "embedding"]

_NAMES: Final[Mapping[str, Capability]] = {
    "chat": "completion",
    "images": "vision",
    "sounds": "audio",
    "suffix": "insert",
    "embed": "embedding",
}
"""Ollama's name for each capability of a loaded model."""
_PROBES: Final[Mapping[Capability, Any]] = {
    "tools": {"tools": [{"type": "function", "function": {"name": "probe", "description": "", "parameters": {}}}]},
    "thinking": {"reasoning": "on"},
}
"""Options that a model without the capability refuses."""
_REASONING_MARKS: Final = ("enable_thinking", "reasoning_effort", "<think>", "<|channel|>analysis")
"""Texts in the chat templates of models that reason."""
_known: Final[WeakKeyDictionary[AsyncWorker, list[Capability]]] = WeakKeyDictionary()
"""Capabilities of each worker's model."""
_FOR_EVER: Final = timedelta(microseconds=2**63 // 1000)
"""The longest duration in Go, which Ollama adds to the time for models that stay."""
_MAX_FILE_BYTES: Final = 32 * 1024 * 1024
API_VERSION: Final = "0.33.0"
"""The version of Ollama whose API this is. Clients refuse servers that are too old."""


class ModelDetails(Struct, kw_only=True):
    """The form of a model. What is unknown before the first load is empty."""

    parent_model: Literal[""] = ""
    format: Literal["safetensors"] = "safetensors"
    family: str
    """The architecture's name in config.json."""
    families: list[str]
    parameter_size: str
    """Such as `7.6B`; empty if the files are on another machine."""
    quantization_level: str
    """Such as `int4`, or the type of weights that are not quantized, such as `BF16`."""


def details_of(served: ServedModel) -> ModelDetails:
    """Return the form of a model. It may read files."""
    family = served.model_type or ""
    weights = weights_of(served)
    return ModelDetails(
        family=family,
        families=[family] if family else [],
        parameter_size=short_number(weights.parameters),
        quantization_level=f"int{served.bits}" if served.bits else weights.type,
    )


def weights_of(served: ServedModel) -> Weights:
    """Return what the files of a model say of its weights. It reads them once."""
    return read_weights(served.path, served.bits, served.created)


def digest_of(served: ServedModel) -> str:
    """Return a hexadecimal name for this version of the model's files. It is not their checksum."""
    return hashlib.sha256(f"{served.path}\0{served.created}".encode(errors="surrogateescape")).hexdigest()


def modified_at(served: ServedModel) -> datetime:
    """Return the time of the model files; the year 1970 if it is unknown."""
    return datetime.fromtimestamp(served.created, UTC)


async def find_capabilities(context: RequestContext, served: ServedModel, template: str) -> list[Capability]:
    """Return the capabilities of a model; empty if they are unknown before the first load.

    Args:
        context: The request's context.
        served: The model.
        template: Its chat template; empty if that is unknown.

    Raises:
        ApiError: The model has too many requests.
    """
    if served.loaded is None:
        return list(_expected(served, template))
    async with context.state.pool.lease(served.id) as lease:
        if lease.worker not in _known:
            able = lease.model.capabilities
            found: list[Capability] = [name for capability, name in _NAMES.items() if capability in able]
            for name, options in _PROBES.items() if "completion" in found else ():
                if await refused_field(lease.worker, **options) is None:
                    found.append(name)
            _known[lease.worker] = found
        return _known[lease.worker]


def _expected(served: ServedModel, template: str) -> Iterator[Capability]:
    if served.kind == "embeddings":
        yield "embedding"
    elif served.kind in ("text", "vision"):
        yield "completion"
        if served.kind == "vision":
            yield "vision"
        if "tools" in template:
            yield "tools"
        if any(mark in template for mark in _REASONING_MARKS):
            yield "thinking"


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
    """All models: those that the operator has named, then loaded ones."""

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


@endpoint("GET", "/api/tags", error_format=OLLAMA_ERRORS, response_type=ListedModels)
async def list_models(context: RequestContext, _: None) -> Json:
    """List the models."""
    served = await context.state.pool.served_models()
    return Json(ListedModels(models=await asyncio.to_thread(lambda: [_to_listed(model) for model in served])))


@endpoint("GET", "/api/ps", error_format=OLLAMA_ERRORS, response_type=LoadedModels)
async def list_loaded(context: RequestContext, _: None) -> Json:
    """List the models in memory."""
    pool = context.state.pool
    statuses = {status.id: status for status in pool.statuses()}
    loaded = [
        (served, statuses[served.id].remaining_s, len(statuses[served.id].replicas))
        for served in await pool.served_models()
        if served.loaded and served.id in statuses
    ]
    return Json(LoadedModels(models=await asyncio.to_thread(lambda: [_to_loaded(*each) for each in loaded])))


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


class ShowRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of /api/show."""

    model: str = ""
    """May be absent if exactly one model is served."""
    verbose: bool | None = None
    """Ignored: tensors are not listed."""


class ShowResponse(Struct, kw_only=True):
    """A model."""

    modelfile: str
    license: str
    """The licence's text, or its name; empty if the files have neither."""
    parameters: str
    """The model's own sampling defaults, one a line; empty if it has none or is not loaded."""
    template: str
    """The chat template; empty if it is unknown."""
    details: ModelDetails
    model_info: dict[str, Any]
    """`general.architecture`, `general.parameter_count`, and with the architecture as prefix `context_length`; for a
    loaded model also `block_count` and `embedding_length`."""
    capabilities: list[Capability]
    """Empty if they are unknown before the first load."""
    modified_at: datetime


class _NamedTemplate(Struct):
    """One of several chat templates."""

    name: str
    template: str


class _TokenizerConfig(Struct):
    """The part of tokenizer_config.json with the chat template."""

    chat_template: str | list[_NamedTemplate] = ""


@endpoint(
    "POST",
    "/api/show",
    error_format=OLLAMA_ERRORS,
    aliases={"name": renamed("model")},
    takes_curl_type=True,
    response_type=ShowResponse,
)
async def show_model(context: RequestContext, body: ShowRequest) -> Json:
    """Describe a model."""
    served = await context.state.pool.served_model(without_tag(body.model))
    context.model = served.id
    template = await asyncio.to_thread(_read_template, Path(served.path))
    details = await asyncio.to_thread(details_of, served)
    return Json(
        ShowResponse(
            modelfile=f"FROM {served.id}\n",
            license=await asyncio.to_thread(read_licence, served.path),
            parameters=_parameters(served.loaded),
            template=template,
            details=details,
            model_info=_model_info(served, body.model),
            capabilities=await find_capabilities(context, served, template),
            modified_at=modified_at(served),
        )
    )


def _model_info(served: ServedModel, name: str) -> dict[str, Any]:
    info: dict[str, Any] = {"general.basename": name}
    if parameters := weights_of(served).parameters:
        info["general.parameter_count"] = parameters
    if family := served.model_type:
        info["general.architecture"] = family
        if served.context_len:
            info[f"{family}.context_length"] = served.context_len
        if served.loaded:
            info[f"{family}.block_count"] = served.loaded.layers
            info[f"{family}.embedding_length"] = served.loaded.hidden_size
    return info


def _parameters(loaded: events.ModelDone | None) -> str:
    defaults = loaded.sampling_defaults if loaded else None
    given: dict[str, Any] = {} if defaults is None else msgspec.to_builtins(defaults)
    return "\n".join(f"{name:30} {value}" for name, value in given.items())


def _read_template(folder: Path) -> str:
    """Return the chat template of a model folder; empty if there is none here."""
    try:
        if (file := folder / "chat_template.jinja").is_file():
            return _read(file).decode()
        given = msgspec.json.decode(_read(folder / "tokenizer_config.json"), type=_TokenizerConfig).chat_template
    except (OSError, ValueError):  # the worker may run on another machine
        return ""
    return given if isinstance(given, str) else next((each.template for each in given if each.name == "default"), "")


def _read(file: Path) -> bytes:
    if file.stat().st_size > _MAX_FILE_BYTES:
        raise ValueError(f"{file} is too long")
    return file.read_bytes()


class Version(Struct, kw_only=True):
    """The versions of the API and of the server."""

    version: str = API_VERSION
    lmwire: str = __version__


@endpoint("GET", "/api/version", error_format=OLLAMA_ERRORS, response_type=Version, is_public=True)
async def get_version(_: RequestContext, __: None) -> Json:
    """Report the version of Ollama's API."""
    return Json(Version())
