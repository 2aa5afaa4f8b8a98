"""Log-probabilities in completions' shape."""

import codecs
from collections.abc import Iterable

from msgspec import Struct

from lmwire_protocol import events

from ..logprobs import log_probability, shown, token_bytes


class CompletionLogprobs(Struct, kw_only=True):
    """The tokens of a text, in lists of the same length."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    """The most probable tokens in each place, and the chosen one."""
    text_offset: list[int]
    """Where each token begins in the text."""


class TokensSoFar:
    """Counts the characters that the tokens of a text have come to."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._characters = 0

    def add(self, tokens: Iterable[events.Logprob]) -> CompletionLogprobs:
        """The next tokens, in completions' shape."""
        added = CompletionLogprobs(tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[])
        for token in shown(tokens):
            added.tokens.append(_name(token))
            added.token_logprobs.append(log_probability(token))
            added.top_logprobs.append({_name(each): log_probability(each) for each in [*token.top, token]})
            added.text_offset.append(self._characters)
            self._characters += len(self._decoder.decode(bytes(token_bytes(token))))
        return added


def _name(token: events.Logprob | events.TopLogprob) -> str:
    """The token's text; where that is incomplete its bytes as OpenAI's API writes them, so that no two are alike."""
    if token.bytes is None:
        return token.token
    return "bytes:" + "".join(f"\\x{byte:02x}" for byte in token.bytes)
