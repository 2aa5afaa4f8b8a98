"""POST /api/embed, and POST /api/embeddings, its older form for one text."""

from collections.abc import Sequence
from time import monotonic
from typing import Any, NamedTuple

from msgspec import Struct

from ..errors import ApiError, RenameField
from ..http.context import RequestContext
from ..http.endpoint import Json, endpoint
from ..http.error_formats import OLLAMA_ERRORS
from ..http.keep_alive import KeepAlive, idle_limit, keeping_alive
from ..inference.context_fit import fit_inputs
from ..inference.generation import check_capability, lease_worker
from ..inference.options import given_fields
from ..limits import Inputs
from ..pool import Lease
from .request import without_tag


class EmbedOptions(Struct, kw_only=True, forbid_unknown_fields=True):
    """Options of an embedding. Those of Ollama's runner are unknown here and ignored."""

    num_ctx: int | None = None
    """Maximum number of tokens of a text, at most those that the model takes."""


class EmbedRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of /api/embed. Null fields count as absent."""

    model: str = ""
    """May be absent if exactly one model is served."""
    input: str | Inputs[str] | None = None
    """One or several texts. Without a text, the model is loaded."""
    dimensions: int | None = None
    truncate: bool | None = None
    """False refuses a text that is longer than the model takes. Otherwise its end is cut off."""
    options: EmbedOptions | None = None
    keep_alive: KeepAlive | None = None


class EmbedResponse(Struct, kw_only=True):
    """A vector of length 1 for each text. Times are in nanoseconds."""

    model: str
    embeddings: list[list[float]]
    total_duration: int
    load_duration: int
    prompt_eval_count: int


class PromptEmbeddingRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of /api/embeddings."""

    model: str = ""
    """May be absent if exactly one model is served."""
    prompt: str | None = None
    """The text. Without it, the model is loaded."""
    options: EmbedOptions | None = None
    keep_alive: KeepAlive | None = None


class EmbeddingResponse(Struct, kw_only=True):
    """The vector of the text, at its original length."""

    embedding: list[float]


class _Embedded(NamedTuple):
    """The vectors of a request."""

    vectors: list[list[float]]
    tokens: int
    ready_at: float
    """Time at which a worker with the model was ready, by `time.monotonic`."""


@endpoint("POST", "/api/embed", error_format=OLLAMA_ERRORS, takes_curl_type=True, response_type=EmbedResponse)
async def embed_inputs(context: RequestContext, body: EmbedRequest) -> Json:
    """Embed texts."""
    texts = [body.input] if isinstance(body.input, str) and body.input else list(body.input or ())
    rename = _same_field if isinstance(body.input, list) else _text_field("input")
    made = await _embed_texts(context, body, texts, rename, given_fields(body, "dimensions"))
    return Json(
        EmbedResponse(
            model=body.model,
            embeddings=made.vectors,
            total_duration=round((monotonic() - context.started_at) * 1e9),
            load_duration=round((made.ready_at - context.started_at) * 1e9),
            prompt_eval_count=made.tokens,
        )
    )


@endpoint("POST", "/api/embeddings", error_format=OLLAMA_ERRORS, takes_curl_type=True, response_type=EmbeddingResponse)
async def embed_prompt(context: RequestContext, body: PromptEmbeddingRequest) -> Json:
    """Embed one text."""
    texts = [body.prompt] if body.prompt else []
    made = await _embed_texts(context, body, texts, _text_field("prompt"), {"normalize": False})
    return Json(EmbeddingResponse(embedding=made.vectors[0] if made.vectors else []))


async def _embed_texts(
    context: RequestContext,
    body: EmbedRequest | PromptEmbeddingRequest,
    texts: Sequence[str],
    rename: RenameField,
    options: Any,
) -> _Embedded:
    """Return the vectors of the texts. Without a text, the model is only loaded.

    Args:
        context: The request's context.
        body: The request's body.
        texts: The texts.
        rename: Maps field paths to those of the client.
        options: Options of `lmwire.AsyncWorker.embed`.
    """
    with keeping_alive(context, idle_limit(body.keep_alive)):
        async with lease_worker(context, without_tag(body.model), rename=rename) as lease:
            ready_at = monotonic()
            check_capability(lease, "embed", body.model)
            if not texts:
                return _Embedded([], 0, ready_at)
            refuses = isinstance(body, EmbedRequest) and body.truncate is False
            texts = await _fitting(lease, texts, body.options, rename, refuses=refuses)
            vectors, usage = await lease.worker.embed(texts, **options)
    context.record_usage(usage)
    return _Embedded([vector.tolist() for vector in vectors], usage.prompt_tokens, ready_at)


async def _fitting(
    lease: Lease, texts: Sequence[str], options: EmbedOptions | None, rename: RenameField, *, refuses: bool
) -> Sequence[str]:
    """Return the texts without the ends that are too long.

    Args:
        lease: The worker with the model.
        texts: The texts.
        options: The request's options.
        rename: Maps field paths to those of the client.
        refuses: Whether a text that is too long is refused instead.

    Raises:
        ApiError: A text is too long and must not be cut, or nothing is left of it.
    """
    room, given = lease.model.context_len, options.num_ctx if options else None
    if given is None or given >= room:
        return texts if refuses else await fit_inputs(lease.worker, texts, room)
    room = max(0, given)
    fitting = await fit_inputs(lease.worker, texts, room)
    for place, (text, left) in enumerate(zip(texts, fitting, strict=True)):
        if text and (not left or (refuses and text != left)):
            field = rename(f"input[{place}]")
            advice = "raise it, or shorten the text" if left else "raise it: nothing would be left of the text"
            message = f"{field}: `options.num_ctx` allows {room} tokens; {advice}"
            raise ApiError(400, message, code="context_overflow", param=field)
    return fitting


def _same_field(field: str) -> str:
    return field


def _text_field(name: str) -> RenameField:
    """Return the function that gives the only text its name in the request."""
    return lambda field: name if field.startswith("input") else field
