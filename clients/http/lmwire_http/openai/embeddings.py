"""POST /v1/embeddings."""

import base64
import sys
from array import array
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct

from ..errors import invalid_field, too_many
from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Json, Reply
from ..inference.context_fit import fit_inputs
from ..inference.generation import check_capability, lease_worker
from ..inference.options import given_fields
from ..limits import INPUTS, TokenList


class EmbeddingRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Texts to embed. Null fields count as absent."""

    model: str = ""
    """May be absent, or `default`, if exactly one model is served."""
    input: str | TokenList[str | int | TokenList[int]]
    """One or several texts. Token ids are not supported."""
    dimensions: int | None = None
    encoding_format: str | None = None
    """`float` or `base64`, in any letter case. Base64 encodes little-endian float32."""
    user: str | None = None
    """Ignored."""
    truncate: bool | None = None
    """lmwire's own field: cut off the end of a text that is longer than the model takes. If absent, as the server does
    (`--truncate-inputs`)."""
    normalize: bool | None = None
    """lmwire's own field: false keeps vectors at their original length instead of 1."""


class Embedding(Struct, kw_only=True):
    """The vector of one text."""

    object: Literal["embedding"] = "embedding"
    index: int
    """The text's index in the request."""
    embedding: str | list[float]


class EmbeddingUsage(Struct, kw_only=True):
    """Tokens of all texts together."""

    prompt_tokens: int
    total_tokens: int


class Embeddings(Struct, kw_only=True):
    """A vector for each text, in their order."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage


async def _create_embeddings(context: RequestContext, body: EmbeddingRequest) -> Reply:
    texts = _texts(body)
    encoding = (body.encoding_format or "float").lower()
    if encoding not in _ENCODINGS:
        raise invalid_field("encoding_format: must be float or base64", "encoding_format")
    options: Any = given_fields(body, "dimensions", "normalize")
    async with lease_worker(context, body.model, rename=partial(_client_field, body)) as lease:
        check_capability(lease, "embed", body.model)
        if context.state.settings.truncate_inputs if body.truncate is None else body.truncate:
            texts = await fit_inputs(lease.worker, texts, lease.model.context_len)
        vectors, usage = await lease.worker.embed(texts, **options)
    context.record_usage(usage)
    written = _ENCODINGS[encoding]
    return Json(
        Embeddings(
            data=[Embedding(index=index, embedding=written(vector)) for index, vector in enumerate(vectors)],
            model=body.model,
            usage=EmbeddingUsage(prompt_tokens=usage.prompt_tokens, total_tokens=usage.prompt_tokens),
        )
    )


def _texts(body: EmbeddingRequest) -> list[str]:
    if isinstance(body.input, str):
        return [body.input]
    texts = [text for text in body.input if isinstance(text, str)]
    if len(texts) < len(body.input):
        raise invalid_field(
            "input: token ids are not supported; send the texts (in LangChain: check_embedding_ctx_length=False)",
            "input",
        )
    if len(texts) > INPUTS:
        raise too_many("input", INPUTS, "texts")
    return texts


def _client_field(body: EmbeddingRequest, field: str) -> str:
    return "input" if field == "input[0]" and isinstance(body.input, str) else field


def _numbers(vector: "array[float]") -> list[float]:
    return vector.tolist()


def _base64(vector: "array[float]") -> str:
    if sys.byteorder == "big":
        vector.byteswap()
    return base64.b64encode(vector).decode()


_ENCODINGS: Final = {"float": _numbers, "base64": _base64}
EMBEDDINGS: Final = Endpoint(
    method="POST",
    path="/v1/embeddings",
    summary="Embed texts.",
    handler=_create_embeddings,
    request_type=EmbeddingRequest,
    response_type=Embeddings,
)
