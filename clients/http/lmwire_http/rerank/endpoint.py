"""POST /v1/rerank, and the same as POST /v2/rerank for Cohere's clients."""

from dataclasses import replace
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Json, Reply
from .request_schema import RerankRequest
from .reranker import Reranker


class RankedDocument(Struct, kw_only=True):
    """The text of a document."""

    text: str


class RerankResult(Struct, kw_only=True):
    """A document's relevance."""

    index: int
    """The document's index in the request."""
    relevance_score: float
    """From 0 to 1."""
    document: RankedDocument | UnsetType = UNSET


class RerankUsage(Struct, kw_only=True):
    """Tokens of all prompts together. Each has the query and one document."""

    prompt_tokens: int
    total_tokens: int


class Ranking(Struct, kw_only=True):
    """The documents, the most relevant first."""

    id: str
    model: str
    results: list[RerankResult]
    usage: RerankUsage


async def _rerank(context: RequestContext, body: RerankRequest) -> Reply:
    reranker = await context.beside_loop(Reranker, context, body)
    ranked = await reranker.relevances()
    texts = None if body.return_documents is False else reranker.texts
    results = [
        RerankResult(
            index=each.index,
            relevance_score=each.score,
            document=UNSET if texts is None else RankedDocument(text=texts[each.index]),
        )
        for each in ranked[: body.top_n]
    ]
    tokens = sum(each.prompt_tokens for each in ranked)
    usage = RerankUsage(prompt_tokens=tokens, total_tokens=tokens)
    return Json(Ranking(id=f"rerank-{context.id}", model=body.model, results=results, usage=usage))


RERANK: Final = Endpoint(
    method="POST",
    path="/v1/rerank",
    summary="Sort documents by their relevance to a query.",
    handler=_rerank,
    request_type=RerankRequest,
    response_type=Ranking,
)
RERANK_V2: Final = replace(RERANK, path="/v2/rerank")
