"""POST /v1/embeddings."""

import base64
import sys
from array import array
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct

from lmwire_protocol import TokensPart

from ..errors import invalid_field, too_many
from ..http.context import RequestContext
from ..http.endpoint import Json, Reply, endpoint
from ..inference.context_fit import fit_inputs
from ..inference.generation import check_capability, lease_worker
from ..inference.options import given_fields
from ..limits import INPUTS, TokenList
from ..pool import Lease


class EmbeddingRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Texts to embed, or their token ids. Null fields count as absent."""

    model: str = ""
    """May be absent, or `default`, if exactly one model is served."""
    input: str | TokenList[str | int | TokenList[int]]
    """A text, several texts, a list of token ids, or several such lists. The ids are those of the served model, and the
    model receives them as they are."""
    dimensions: int | None = None
    encoding_format: str | None = None
    """`float` or `base64`, in any letter case. Base64 encodes little-endian float32."""
    user: str | None = None
    """Ignored."""
    truncate: bool | None = None
    """lmwire's own field: cut off the end of an input that is longer than the model takes. If absent, as the server
    does (`--truncate-inputs`)."""
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


@endpoint("POST", "/v1/embeddings", response_type=Embeddings)
async def create_embeddings(context: RequestContext, body: EmbeddingRequest) -> Reply:
    """Embed texts."""
    inputs = _inputs(body)
    encoding = (body.encoding_format or "float").lower()
    if encoding not in _ENCODINGS:
        raise invalid_field("encoding_format: must be float or base64", "encoding_format")
    options: Any = given_fields(body, "dimensions", "normalize")
    async with lease_worker(context, body.model, rename=partial(_client_field, body)) as lease:
        check_capability(lease, "embed", body.model)
        if context.state.settings.truncate_inputs if body.truncate is None else body.truncate:
            inputs = await _fitting(lease, inputs)
        vectors, usage = await lease.worker.embed(inputs, **options)
    context.record_usage(usage)
    written = _ENCODINGS[encoding]
    return Json(
        Embeddings(
            data=[Embedding(index=index, embedding=written(vector)) for index, vector in enumerate(vectors)],
            model=body.model,
            usage=EmbeddingUsage(prompt_tokens=usage.prompt_tokens, total_tokens=usage.prompt_tokens),
        )
    )


def _inputs(body: EmbeddingRequest) -> list[str] | list[TokensPart]:
    """Return the inputs, which are of one kind.

    Raises:
        ApiError: The inputs are of several kinds, or too many.
    """
    if isinstance(body.input, str):
        return [body.input]
    given: Any = [body.input] if _is_one(body) else body.input
    for place, item in enumerate(body.input):
        if type(item) is not type(body.input[0]):
            problem = "must be of the same kind as those before: texts, token ids, or lists of token ids"
            raise invalid_field(f"input[{place}]: {problem}", f"input[{place}]")
    if len(given) > INPUTS:
        raise too_many("input", INPUTS, "inputs")
    return given if isinstance(next(iter(given), ""), str) else [TokensPart(each) for each in given]


def _is_one(body: EmbeddingRequest) -> bool:
    """Return whether the input is one text, or the token ids of one."""
    return isinstance(body.input, str) or isinstance(next(iter(body.input), None), int)


async def _fitting(lease: Lease, inputs: list[str] | list[TokensPart]) -> list[str] | list[TokensPart]:
    """Return the inputs without the ends that the context cannot hold."""
    context_len = lease.model.context_len
    tokens = [TokensPart(each.token_ids[:context_len]) for each in inputs if isinstance(each, TokensPart)]
    texts = [each for each in inputs if isinstance(each, str)]
    return tokens or await fit_inputs(lease.worker, texts, context_len)


def _client_field(body: EmbeddingRequest, field: str) -> str:
    field = field.replace(".token_ids", "", 1)
    return f"input{field.removeprefix(_FIRST)}" if field.startswith(_FIRST) and _is_one(body) else field


def _numbers(vector: "array[float]") -> list[float]:
    return vector.tolist()


def _base64(vector: "array[float]") -> str:
    if sys.byteorder == "big":
        vector.byteswap()
    return base64.b64encode(vector).decode()


_FIRST: Final = "input[0]"
_ENCODINGS: Final = {"float": _numbers, "base64": _base64}
