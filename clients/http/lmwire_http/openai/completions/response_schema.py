"""A completion. Chunks of a stream have the same format."""

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from lmwire import Answer
from lmwire_protocol import events

from ...inference.generation import FinishReason, finish_reason
from ..prompt_progress import PromptProgress
from ..usage import Usage
from .logprobs import CompletionLogprobs, LogprobsEncoder, prompt_text


class CompletionChoice(Struct, kw_only=True):
    """A continuation of a prompt, or a part of one. Prompt 0 has the first `n` indices, then prompt 1."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: FinishReason | None = None


class Completion(Struct, kw_only=True):
    """Continuations of prompts."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    """Time of the request, in seconds since 1970."""
    model: str
    system_fingerprint: str
    """Changes with the version of the server, the model and the options that change answers."""
    choices: list[CompletionChoice]
    usage: Usage | UnsetType | None = UNSET
    """Token counts of all prompts together."""
    prompt_progress: PromptProgress | UnsetType = UNSET
    """Present, if requested, in chunks that come while the prompts are processed."""


def make_choices(answers: Sequence[Answer], *, first: int, before: str, logprobs: bool) -> list[CompletionChoice]:
    """Return the continuations of one prompt.

    Args:
        answers: The worker's answers.
        first: The index of the first one.
        before: Text before each continuation.
        logprobs: Whether the request asks for log-probabilities.

    Raises:
        ApiError: The server has cancelled the answers.
    """
    prompt = [logprob for answer in answers for logprob in answer.prompt_logprobs]  # the first answer alone has them
    return [
        CompletionChoice(
            index=index,
            text=(before or prompt_text(prompt)) + answer.text,
            logprobs=_logprobs(prompt, answer.logprobs) if logprobs else None,
            finish_reason=finish_reason(answer.finish_reason),
        )
        for index, answer in enumerate(answers, first)
    ]


def _logprobs(prompt: Sequence[events.Logprob], answer: Sequence[events.Logprob]) -> CompletionLogprobs:
    encoder = LogprobsEncoder()
    first, then = encoder.add_prompt(prompt), encoder.add(answer)
    return CompletionLogprobs(
        tokens=first.tokens + then.tokens,
        token_logprobs=first.token_logprobs + then.token_logprobs,
        top_logprobs=first.top_logprobs + then.top_logprobs,
        text_offset=first.text_offset + then.text_offset,
    )
