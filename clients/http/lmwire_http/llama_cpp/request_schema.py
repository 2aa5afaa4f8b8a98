"""The body of a request to fill a gap."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from lmwire import PromptOptions

from ..inference.options import given_fields, shared_fields
from ..limits import ContextFiles, ShortList, StopStrings

_UNNAMED: Final = "tmp"
"""The name of a file without one, as in llama.cpp's server."""
_UNLIMITED: Final = -1
_SEED_COUNT: Final = 2**53
_CLIENT_FIELDS: Final = {"suffix": "input_suffix", "context_files": "input_extra", "max_tokens": "n_predict"}
"""The client's names of the worker's fields."""


class ExtraFile(Struct, kw_only=True, forbid_unknown_fields=True):
    """A part of another file."""

    filename: str = _UNNAMED
    text: str = ""
    time: Any = None
    """Ignored: the time at which llama.vim chose the part."""


class InfillRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A gap to fill. Null fields count as absent."""

    model: str = ""
    """May be absent, or `default`, if exactly one model is served."""
    input_prefix: str | None = None
    """Text before the gap."""
    input_suffix: str | None = None
    """Text after the gap."""
    input_extra: ContextFiles[ExtraFile] | None = None
    """Parts of other files, the most relevant last."""
    prompt: str | None = None
    """The line of the cursor, up to the cursor. It follows `input_prefix`."""
    n_predict: Annotated[int, Meta(ge=_UNLIMITED)] | None = None
    """Maximum number of tokens; -1 is the rest of the context, and 0 only puts the prompt into the cache."""
    n_indent: Annotated[int, Meta(ge=0)] | None = None
    """The answer ends before a line with less indentation, in characters."""
    t_max_predict_ms: Annotated[int, Meta(ge=0)] | None = None
    """Milliseconds after the first token, after which an answer with a line break ends; 0 is off."""
    t_max_prompt_ms: int | None = None
    """Ignored, as by llama.cpp's server."""
    stream: bool | None = None
    response_fields: ShortList[str] | None = None
    """Fields of the response, with a slash between the names of nested ones. Absent or empty: all."""
    stop: str | StopStrings | None = None
    temperature: float | None = None
    """Absent: 0, the most probable tokens."""
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    cache: str | None = None
    samplers: ShortList[str] | None = None
    """Ignored: the order of the samplers is fixed."""
    id_slot: int | None = None
    """Ignored: the server chooses the place in the batch."""


_OPTIONS: Final = shared_fields(InfillRequest, PromptOptions, converted=("stop", "seed"))


def infill_options(body: InfillRequest) -> PromptOptions:
    """Return all options except the prompt, as the client library takes them."""
    options: Any = {"temperature": 0.0, "truncate": "left", **given_fields(body, *_OPTIONS)}
    options["suffix"] = body.input_suffix or ""
    options["context_files"] = [{"name": file.filename, "text": file.text} for file in body.input_extra or ()]
    if body.n_predict is not None and body.n_predict != _UNLIMITED:
        options["max_tokens"] = body.n_predict
    if body.seed is not None and body.seed >= 0:
        options["seed"] = body.seed % _SEED_COUNT
    if body.stop is not None:
        options["stop"] = [body.stop] if isinstance(body.stop, str) else body.stop
    return options


def client_field(field: str) -> str:
    """Return the client's name of a worker's field."""
    for own, theirs in _CLIENT_FIELDS.items():
        if field == own or field.startswith(f"{own}["):
            return theirs + field.removeprefix(own)
    return field
