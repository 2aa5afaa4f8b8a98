"""Log-probabilities in the format of completions."""

import codecs
from collections.abc import Iterable, Sequence

from msgspec import Struct

from lmwire_protocol import events

from ...inference.answers import log_probability, token_bytes, visible_tokens


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
