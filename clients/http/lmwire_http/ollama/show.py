"""POST /api/show: what a model is and what it can do. It loads nothing."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from lmwire_protocol import events

from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Json
from ..http.error_formats import OLLAMA_ERRORS
from ..inference.options import renamed
from ..pool import ServedModel
from .capabilities import Capability, find_capabilities
from .model_details import ModelDetails, details_of, modified_at
from .model_names import without_tag

_MAX_FILE_BYTES: Final = 32 * 1024 * 1024


class ShowRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of /api/show."""

    model: str = ""
    """May be absent if exactly one model is served."""
    verbose: bool | None = None
    """Ignored: tensors are not listed."""


class ShowResponse(Struct, kw_only=True):
    """A model."""

    modelfile: str
    parameters: str
    """The model's own sampling defaults, one a line; empty if it has none or is not loaded."""
    template: str
    """The chat template; empty if it is unknown."""
    details: ModelDetails
    model_info: dict[str, Any]
    """`general.architecture`, and with it as prefix `context_length`; for a loaded model also `block_count` and
    `embedding_length`."""
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


async def _show(context: RequestContext, body: ShowRequest) -> Json:
    served = await context.state.pool.served_model(without_tag(body.model))
    context.model = served.id
    template = await asyncio.to_thread(_read_template, Path(served.path))
    return Json(
        ShowResponse(
            modelfile=f"FROM {served.id}\n",
            parameters=_parameters(served.loaded),
            template=template,
            details=details_of(served),
            model_info=_model_info(served, body.model),
            capabilities=await find_capabilities(context, served, template),
            modified_at=modified_at(served),
        )
    )


def _model_info(served: ServedModel, name: str) -> dict[str, Any]:
    info: dict[str, Any] = {"general.basename": name}
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


SHOW: Final = Endpoint(
    method="POST",
    path="/api/show",
    summary="Describe a model.",
    handler=_show,
    error_format=OLLAMA_ERRORS,
    request_type=ShowRequest,
    aliases={"name": renamed("model")},
    takes_curl_type=True,
    response_type=ShowResponse,
)
