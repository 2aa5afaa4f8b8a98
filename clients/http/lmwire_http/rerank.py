"""POST /v1/rerank, and the same as POST /v2/rerank for Cohere's clients: the API that Jina, Cohere and vLLM share.

A document's relevance is the probability that a generative reranker's answer is `yes`, and not `no`.
"""

import math
import re
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from lmwire import Answer, AsyncStream
from lmwire_protocol import events

from .errors import ApiError, invalid_field
from .http.context import RequestContext
from .http.endpoint import Endpoint, Json, Reply, endpoint
from .inference.generation import lease_worker, merge_streams, run_generation
from .pool import Lease

MAX_DOCUMENTS: Final = 1000
"""Most documents of a request. Cohere's API recommends the same limit."""
YES: Final = "yes"
NO: Final = "no"
_MODEL_TYPE: Final = "qwen3"
_NAME: Final = re.compile(r"(?<![a-z])reranker(?![a-z])", re.IGNORECASE)
_NAME_PARTS: Final = 3
"""Last parts of a path that can hold a model's name: a hub's snapshot lies two folders below it."""
_INSTRUCTION: Final = "Given a web search query, retrieve relevant passages that answer the query"
_PROMPT: Final = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
    "<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"
    "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
)
_FORCING_BIAS: Final = 100
"""Logit bias that makes a token the answer. Log-probabilities are those before it."""
_TOP_LOGPROBS: Final = 20
"""Most alternatives that a worker reports. The other answer is nearly always one of them."""


class Document(Struct, kw_only=True, forbid_unknown_fields=True):
    """A document as an object."""

    text: str
    image: Any = None
    """Not supported."""


Documents: TypeAlias = Annotated[list[str | Document], Meta(min_length=1, max_length=MAX_DOCUMENTS)]


class RerankRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Documents to sort by their relevance to a query. Null fields count as absent."""

    model: str = ""
    """May be absent, or `default`, if exactly one model is served."""
    query: Annotated[str, Meta(min_length=1)]
    documents: Documents
    """Texts, or objects with a text."""
    top_n: Annotated[int, Meta(ge=1)] | None = None
    """Return only this number of documents: the most relevant ones."""
    return_documents: bool | None = None
    """Return the text of each document; true by default."""
    instruction: Annotated[str, Meta(min_length=1)] | None = None
    """The task for which documents are relevant. By default the one with which the model was trained."""


def document_texts(body: RerankRequest) -> list[str]:
    """Return the texts of the documents.

    Raises:
        ApiError: A document has an image.
    """
    return [_text(document, f"documents[{index}]") for index, document in enumerate(body.documents)]


def _text(document: str | Document, path: str) -> str:
    if isinstance(document, str):
        return document
    if document.image is not None:
        raise invalid_field(f"{path}.image: documents are texts here; leave it out", f"{path}.image")
    return document.text


def is_reranker(model: events.ModelDone, name: str) -> bool:
    """Return whether a model is a Qwen3-Reranker. Its files do not say so: only its name differs from a Qwen3.

    Args:
        model: The worker's description of the model.
        name: The id under which the model is served.
    """
    names = [name, *model.path.split("/")[-_NAME_PARTS:]]
    return model.model_type == _MODEL_TYPE and any(map(_NAME.search, names))


def make_prompt(query: str, document: str, instruction: str | None) -> str:
    """Return the prompt for one document.

    Args:
        query: The query.
        document: The document's text.
        instruction: The task; None for that with which the model was trained.
    """
    return _PROMPT.format(instruction=instruction or _INSTRUCTION, query=query, document=document)


def relevance(yes: float, no: float) -> float:
    """Return the probability of `yes` if the answer is `yes` or `no`.

    Args:
        yes: The log-probability of `yes`; -inf for a probability of 0.
        no: That of `no`.
    """
    if math.isinf(yes):
        return 0.0
    difference = yes - no
    return 1 / (1 + math.exp(-difference)) if difference >= 0 else math.exp(difference) / (1 + math.exp(difference))


@dataclass(frozen=True, slots=True)
class Relevance:
    """The relevance of one document."""

    index: int
    score: float
    """From 0 to 1."""
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class _AnswerTokens:
    """The tokens of the two answers."""

    yes: int
    no: int


class Reranker:
    """The documents of one request.

    Args:
        context: The request's context.
        body: The request's body.

    Raises:
        ApiError: The request is invalid.
    """

    def __init__(self, context: RequestContext, body: RerankRequest) -> None:
        self._context, self._body = context, body
        self.texts = document_texts(body)

    async def relevances(self) -> list[Relevance]:
        """Return the relevance of each document, the most relevant first.

        Raises:
            ApiError: The model is not a reranker, or has failed.
        """
        answers = await self._answer_tokens()
        async with aclosing(merge_streams(partial(self._score, answers), len(self.texts))) as scores:
            return sorted([score async for score in scores], key=lambda score: (-score.score, score.index))

    async def _answer_tokens(self) -> _AnswerTokens:
        async with lease_worker(self._context, self._body.model, rename=lambda _: None) as lease:
            if not is_reranker(lease.model, lease.model_id):
                raise _not_a_reranker(self._body.model or lease.model_id)
            tokens = [await lease.worker.tokenize(answer) for answer in (YES, NO)]
        if any(len(each.ids) != 1 for each in tokens):
            raise _not_a_reranker(self._body.model or lease.model_id)
        return _AnswerTokens(tokens[0].ids[0], tokens[1].ids[0])

    async def _score(self, answers: _AnswerTokens, index: int) -> AsyncIterator[Relevance]:
        logprobs, usage = await self._ask(index, answers.yes)
        if answers.no not in logprobs:  # it is not among the most probable tokens
            logprobs |= (await self._ask(index, answers.no))[0]
        score = relevance(logprobs.get(answers.yes, -math.inf), logprobs.get(answers.no, -math.inf))
        yield Relevance(index, score, usage.prompt_tokens)

    async def _ask(self, index: int, answer: int) -> tuple[dict[int, float], events.Usage]:
        """Return the log-probabilities of an answer and of the most probable tokens, and the token counts."""
        path = f"documents[{index}]"
        prompt = make_prompt(self._body.query, self.texts[index], self._body.instruction)
        options: dict[str, Any] = {
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": _TOP_LOGPROBS,
            "logit_bias": {answer: _FORCING_BIAS},
        }

        async def start(lease: Lease, complete: dict[str, Any]) -> AsyncStream:
            return lease.worker.generate(prompt, **complete)

        def rename(field: str) -> str | None:
            return path if field == "prompt" else None

        generating = run_generation(self._context, self._body.model, options, start, prompt=[prompt], rename=rename)
        with _naming_document(path):
            async with generating as generation:
                (text,) = await generation.answers()
                return _logprobs(text), generation.result.usage


def _logprobs(answer: Answer) -> dict[int, float]:
    """Return the log-probabilities of an answer of one token, and of its alternatives, by token."""
    reported = [each for entry in answer.logprobs or () for each in (entry, *entry.top)]
    return {each.token_id: each.logprob for each in reported if each.logprob is not None}


@contextmanager
def _naming_document(path: str) -> Generator[None]:
    """Name the document in the error for a prompt that is too long. A worker names no field for it."""
    try:
        yield
    except ApiError as error:
        if error.code != "context_overflow":
            raise
        problem = "with the query and the instruction, it is longer than the model's context; shorten it"
        raise ApiError(400, f"{path}: {problem}", code=error.code, param=path) from error


def _not_a_reranker(name: str) -> ApiError:
    message = (
        f"model: {name[:200]} is not a reranker; serve one of the Qwen3-Reranker family, such as "
        "Qwen/Qwen3-Reranker-0.6B, under a name with `reranker`"
    )
    return ApiError(501, message, code="unsupported", param="model")


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


@endpoint("POST", "/v1/rerank", response_type=Ranking)
async def rerank(context: RequestContext, body: RerankRequest) -> Reply:
    """Sort documents by their relevance to a query."""
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


ENDPOINTS: Final[Sequence[Endpoint]] = (rerank, replace(rerank, path="/v2/rerank"))
