"""Token counts in OpenAI's API."""

from msgspec import Struct

from lmwire_protocol import events


class PromptDetails(Struct, kw_only=True):
    """Details of the prompt's tokens."""

    cached_tokens: int


class CompletionDetails(Struct, kw_only=True):
    """Details of the answer's tokens."""

    reasoning_tokens: int
    accepted_prediction_tokens: int = 0
    """Tokens that the draft model proposed and the model accepted."""


class Usage(Struct, kw_only=True):
    """Token counts of a request."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


def total_usage(*used: events.Usage) -> Usage:
    """Return the sum of the workers' reports."""
    prompt = sum(each.prompt_tokens for each in used)
    completion = sum(each.completion_tokens for each in used)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        prompt_tokens_details=PromptDetails(cached_tokens=sum(each.cached_tokens for each in used)),
        completion_tokens_details=CompletionDetails(
            reasoning_tokens=sum(each.reasoning_tokens for each in used),
            accepted_prediction_tokens=sum(each.draft_accepted for each in used),
        ),
    )
