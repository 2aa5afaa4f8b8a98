"""A completion, also as a chunk of a stream, its log-probabilities, and the best of several answers by them."""

import codecs
from collections.abc import Iterable, Sequence
from math import inf
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from lmwire import Answer
from lmwire_protocol import events

from ...inference.answers import log_probability, token_bytes, visible_tokens
from ...inference.generation import FinishReason, finish_reason
from ..response_fields import PromptProgress, Usage


class CompletionLogprobs(Struct, kw_only=True):
    """The tokens of a text, in lists of equal length."""

    tokens: list[str]
    token_logprobs: list[float | None]
    """Null for the first token of a prompt."""
    top_logprobs: list[dict[str, float] | None]
    """The most probable tokens at each position, and the chosen token. Null for the first token of a prompt."""
    text_offset: list[int]
    """Position of each token in the text, in characters."""


class LogprobsEncoder:
    """Converts the tokens of a text, and counts their characters."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._characters = 0

    def add_prompt(self, tokens: Sequence[events.Logprob]) -> CompletionLogprobs:
        """Return the tokens of a prompt in the format of completions. They come first."""
        added = CompletionLogprobs(tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[])
        for token in tokens:
            self._append(added, token)
        if added.tokens:
            added.token_logprobs[0] = added.top_logprobs[0] = None
        return added

    def add(self, tokens: Iterable[events.Logprob]) -> CompletionLogprobs:
        """Return the next tokens in the format of completions."""
        added = CompletionLogprobs(tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[])
        for token in visible_tokens(tokens):
            self._append(added, token)
        return added

    def _append(self, added: CompletionLogprobs, token: events.Logprob) -> None:
        added.tokens.append(_name(token))
        added.token_logprobs.append(log_probability(token))
        added.top_logprobs.append({_name(each): log_probability(each) for each in [*token.top, token]})
        added.text_offset.append(self._characters)
        self._characters += len(self._decoder.decode(bytes(token_bytes(token))))


def prompt_text(tokens: Iterable[events.Logprob]) -> str:
    """Return the text of a prompt's tokens."""
    return b"".join(bytes(token_bytes(token)) for token in tokens).decode(errors="replace")


def _name(token: events.Logprob | events.TopLogprob) -> str:
    """Return the token's text. Incomplete characters become bytes, as in OpenAI's API, so that names are unique."""
    if token.bytes is None:
        return token.token
    return "bytes:" + "".join(f"\\x{byte:02x}" for byte in token.bytes)


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


def best_answers(answers: Sequence[Answer], n: int) -> list[Answer]:
    """Return the `n` best answers, the best first.

    Args:
        answers: The answers, with their log-probabilities.
        n: Number of answers to return.
    """
    return sorted(answers, key=_mean_logprob, reverse=True)[:n]


def _mean_logprob(answer: Answer) -> float:
    if not answer.logprobs:
        return -inf
    return sum(map(log_probability, answer.logprobs)) / len(answer.logprobs)
