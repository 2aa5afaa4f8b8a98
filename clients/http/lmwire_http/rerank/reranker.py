"""The relevance of documents, from the probabilities of a generative reranker's answers."""

import math
from collections.abc import AsyncIterator, Generator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from lmwire import Answer, AsyncStream
from lmwire_protocol import events

from ..errors import ApiError
from ..http.context import RequestContext
from ..inference.generation import lease_worker, merge_streams, run_generation
from ..pool import Lease
from .prompt import NO, YES, is_reranker, make_prompt, relevance
from .request_schema import RerankRequest, document_texts

_FORCING_BIAS: Final = 100
"""Logit bias that makes a token the answer. Log-probabilities are those before it."""
_TOP_LOGPROBS: Final = 20
"""Most alternatives that a worker reports. The other answer is nearly always one of them."""


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
