"""A completion, whole or in chunks, which have the same shape."""

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from lmwire import Answer

from ..usage import FinishReason, Usage, finish_reason
from .logprobs import CompletionLogprobs, TokensSoFar


class CompletionChoice(Struct, kw_only=True):
    """A continuation of one of the prompts, or a piece of one: of prompt 0 there are `n`, then of prompt 1."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: FinishReason | None = None


class Completion(Struct, kw_only=True):
    """Continuations of prompts."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    """Seconds since 1970."""
    model: str
    choices: list[CompletionChoice]
    usage: Usage | UnsetType | None = UNSET
    """Of all prompts together."""


def choices_of(answers: Sequence[Answer], *, first: int, before: str, logprobs: bool) -> list[CompletionChoice]:
    """The continuations of one prompt.

    Args:
        answers: They.
        first: The first one's number.
        before: What to put in front of each text.
        logprobs: Whether they were asked for.

    Raises:
        ApiError: the server has cancelled them.
    """
    return [
        CompletionChoice(
            index=index,
            text=before + answer.text,
            logprobs=TokensSoFar().add(answer.logprobs) if logprobs else None,
            finish_reason=finish_reason(answer.finish_reason),
        )
        for index, answer in enumerate(answers, first)
    ]
