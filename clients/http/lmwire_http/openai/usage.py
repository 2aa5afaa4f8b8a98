"""Token counts in OpenAI's API."""

from msgspec import UNSET, Struct, UnsetType

from lmwire import TokenDelta, ToolCallDelta
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
    prompt_tokens_details: PromptDetails | UnsetType = UNSET
    """Absent until the request has ended."""
    completion_tokens_details: CompletionDetails | UnsetType = UNSET
    """Absent until the request has ended."""


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


class UsageSoFar:
    """Token counts of a request while it runs, for vLLM's `continuous_usage_stats`.

    The worker reports a prompt's length before its first token. The token that ends an answer is in no delta, so the
    counts of a prompt are exact once it has ended.
    """

    def __init__(self) -> None:
        self._prompt_tokens: dict[int, int] = {}
        self._completion_tokens: dict[int, int] = {}

    def note_prompt(self, prompt: int, tokens: int) -> None:
        """Take in the length of a prompt.

        Args:
            prompt: The number of the prompt in the request.
            tokens: Its number of tokens.
        """
        self._prompt_tokens[prompt] = tokens

    def note_delta(self, prompt: int, delta: TokenDelta | ToolCallDelta) -> None:
        """Take in the tokens of a delta.

        Args:
            prompt: The number of the delta's prompt.
            delta: The delta.
        """
        if isinstance(delta, TokenDelta):
            self._completion_tokens[prompt] = self._completion_tokens.get(prompt, 0) + len(delta.token_ids)

    def note_end(self, prompt: int, used: events.Usage) -> None:
        """Take in the worker's counts for a prompt.

        Args:
            prompt: The number of the prompt.
            used: The counts.
        """
        self._prompt_tokens[prompt] = used.prompt_tokens
        self._completion_tokens[prompt] = used.completion_tokens

    def usage(self) -> Usage | None:
        """Return the sum of the counts; None until the length of a prompt is known."""
        if not self._prompt_tokens:
            return None
        prompt, completion = sum(self._prompt_tokens.values()), sum(self._completion_tokens.values())
        return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)
