"""What a completion is asked with."""

from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta

from lmwire import Options

from ...errors import invalid_field
from ..generation_params import Count, Generating, generation_options
from ..generation_params import renamed as renamed_option
from ..unsupported_fields import refuse

Prompt: TypeAlias = str | list[int]
"""Text, or token ids."""

_MAX_TOKENS: Final = 16
"""OpenAI's default."""
_TOKEN_FIELD: Final = "prompt["
_REFUSED: Final = {"suffix": "nothing is filled in between here; put what is to be continued into `prompt`"}


class CompletionBody(Generating, kw_only=True, forbid_unknown_fields=True):
    """Prompts to continue, and how. Null is absent."""

    prompt: str | list[str | int | list[int]]
    """A text, several, a list of token ids, or several such lists."""
    max_tokens: Count | None = None
    echo: bool | None = None
    """Put the prompt in front of the text."""
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    """Log-probabilities of each token, and of so many others in its place."""
    best_of: int | None = None
    """As `n`, if at all: answers are not compared."""
    suffix: Any = None
    """Refused."""


def prompts_of(body: CompletionBody) -> list[Prompt]:
    """The prompts, each of which is a request of its own.

    Raises:
        ApiError: they are none.
    """
    given: Any = body.prompt
    if isinstance(given, str):
        return [given]
    if not given:
        raise invalid_field("prompt: is an empty list; give a text, texts, token ids, or lists of token ids", "prompt")
    for place, item in enumerate(given):
        if type(item) is not type(given[0]):
            problem = "must be of the same kind as those before: texts, token ids, or lists of token ids"
            raise invalid_field(f"prompt[{place}]: {problem}", f"prompt[{place}]")
    return [given] if isinstance(given[0], int) else given


def completion_options(body: CompletionBody) -> Options:
    """Everything but the prompts, as the client library takes it.

    Raises:
        ApiError: it cannot be honoured, or contradicts itself.
    """
    refuse(body, _REFUSED)
    if body.best_of not in {None, body.n or 1}:
        raise invalid_field("best_of: must be as `n`, or left out: answers are not compared here", "best_of")
    if body.echo:
        _check_echo(body)
    options = generation_options(body)
    options["max_tokens"] = _MAX_TOKENS if body.max_tokens is None else body.max_tokens
    if body.logprobs is not None:
        options["logprobs"] = True
        options["top_logprobs"] = body.logprobs
    return options


def renamed(body: CompletionBody, number: int, field: str) -> str:
    """The client's name of a field on the wire, in the request for the prompt of this number."""
    if field == "top_logprobs":
        return "logprobs"
    if field == "prompt" or field.startswith(_TOKEN_FIELD):
        several = isinstance(body.prompt, list) and not isinstance(body.prompt[0], int)
        return f"prompt[{number}]{field.removeprefix('prompt')}" if several else field
    return renamed_option(body, field)


def _check_echo(body: CompletionBody) -> None:
    if body.logprobs is not None:
        problem = "is not served with `logprobs`: those of a prompt are not computed; leave out one of them"
        raise invalid_field(f"echo: {problem}", "echo")
    if not all(isinstance(prompt, str) for prompt in prompts_of(body)):
        raise invalid_field("echo: is not served for token ids, which are not made text again; leave it out", "echo")
