"""The body of a completion request."""

from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta

from lmwire import PromptOptions

from ...errors import invalid_field, too_many
from ...limits import PROMPTS, TokenList
from ..request_fields import Count, GenerationParams, generation_options
from ..request_fields import client_field as renamed_option

Prompt: TypeAlias = str | list[int]
"""Text or token ids."""

_TOKEN_FIELD: Final = "prompt["


class CompletionRequest(GenerationParams, kw_only=True, forbid_unknown_fields=True):
    """Prompts to continue. Null fields count as absent."""

    prompt: str | TokenList[str | int | TokenList[int]] | None = None
    """A text, several texts, a list of token ids, or several such lists. Absent: the model's own start of a text."""
    max_tokens: Count | None = None
    echo: bool | None = None
    """Put the prompt before the text."""
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    """Return the log-probabilities of each token and of this number of alternatives."""
    best_of: Annotated[int, Meta(ge=1, le=16)] | None = None
    """Generate this number of answers to each prompt, and return the `n` with the highest mean log-probability."""
    return_progress: bool | None = None
    """Report the progress of the prompt in chunks of a stream, as llama.cpp does."""
    suffix: str | None = None
    """Text after a gap, which the answer fills. Empty: none. Needs a model that fills gaps."""


def prompts_of(body: CompletionRequest) -> list[Prompt]:
    """Return the prompts. Each is a request of its own.

    Raises:
        ApiError: The prompts are invalid.
    """
    given: Any = "" if body.prompt is None else body.prompt
    if isinstance(given, str):
        return [given]
    if not given:
        raise invalid_field("prompt: is an empty list; give a text, texts, token ids, or lists of token ids", "prompt")
    for place, item in enumerate(given):
        if type(item) is not type(given[0]):
            problem = "must be of the same kind as those before: texts, token ids, or lists of token ids"
            raise invalid_field(f"prompt[{place}]: {problem}", f"prompt[{place}]")
    if isinstance(given[0], int):
        return [given]
    if len(given) > PROMPTS:
        raise too_many("prompt", PROMPTS, "prompts")
    return given


def completion_options(body: CompletionRequest) -> PromptOptions:
    """Return all options except the prompts, as the client library takes them.

    Raises:
        ApiError: A field is not supported, or fields contradict each other.
    """
    if body.best_of is not None:
        _check_best_of(body, body.best_of)
    options: PromptOptions = {**generation_options(body), **_echo_options(body)}
    if body.suffix:
        options["suffix"] = body.suffix
    if body.max_tokens is not None:
        options["max_tokens"] = body.max_tokens
    if body.logprobs is not None:
        options["logprobs"] = True
        options["top_logprobs"] = body.logprobs
    if compares_answers(body):
        options["logprobs"] = True
        options["n"] = candidates(body)
    return options


def candidates(body: CompletionRequest) -> int:
    """Return the number of answers to generate for each prompt."""
    return body.best_of or body.n or 1


def compares_answers(body: CompletionRequest) -> bool:
    """Return whether the response has only the best of the generated answers."""
    return candidates(body) > (body.n or 1)


def client_field(body: CompletionRequest, number: int, field: str) -> str:
    """Return the client's name of a worker's field.

    Args:
        body: The request's body.
        number: The number of the prompt.
        field: The path of the worker's field.
    """
    if field == "top_logprobs":
        return "logprobs"
    if field == "n" and body.best_of is not None:
        return "best_of"
    if field == "prompt" and body.prompt is None:
        return field
    if field == "prompt" or field.startswith(_TOKEN_FIELD):
        several = isinstance(body.prompt, list) and not isinstance(body.prompt[0], int)
        return f"prompt[{number}]{field.removeprefix('prompt')}" if several else field
    return renamed_option(body, field)


def _check_best_of(body: CompletionRequest, best_of: int) -> None:
    if best_of < (body.n or 1):
        raise invalid_field("best_of: must not be less than `n`", "best_of")
    if body.stream and compares_answers(body):
        raise invalid_field("best_of: cannot be streamed, since answers are compared when they end", "best_of")


def _echo_options(body: CompletionRequest) -> PromptOptions:
    """Return the options with which the worker reports the prompt; none if the echo is a text without more.

    Raises:
        ApiError: The echo cannot be streamed.
    """
    if not body.echo:
        return {}
    if body.logprobs is None and all(isinstance(prompt, str) for prompt in prompts_of(body)):
        return {}
    if body.stream:
        raise invalid_field("echo: cannot be streamed with `logprobs` or token ids; leave out `stream`", "echo")
    # The end of a text has no place in the lists, and lm-evaluation-harness drops their last entry.
    least = body.min_tokens or 0 if body.max_tokens == 0 else max(1, body.min_tokens or 0)
    return {"prompt_logprobs": True, "min_tokens": least}
