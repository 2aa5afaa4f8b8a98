"""Log-probabilities in chat completions' shape."""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from lmwire import CallPiece, Piece
from lmwire_protocol import events

IMPOSSIBLE = -9999.0
"""OpenAI's figure for a probability of 0, whose logarithm JSON has no number for."""


class TopLogprob(Struct, kw_only=True):
    """A token that was probable in a place."""

    token: str
    logprob: float
    bytes: list[int]


class TokenLogprob(Struct, kw_only=True):
    """A token of the answer."""

    token: str
    logprob: float
    bytes: list[int]
    """Of UTF-8: joined with those of its neighbours they are text, which its own need not be."""
    top_logprobs: list[TopLogprob]


class Logprobs(Struct, kw_only=True):
    """The tokens of an answer."""

    content: list[TokenLogprob]
    refusal: None = None


def content_logprobs(piece: Piece | CallPiece) -> list[TokenLogprob]:
    """Return those of a piece's tokens whose text is in the content; joined, they are the content."""
    if not piece.logprobs or piece.call or piece.channel != "content":
        return []
    return [_token(each) for each in shown(piece.logprobs)]


def shown(tokens: Iterable[events.Logprob]) -> Iterator[events.Logprob]:
    """Yield the tokens of which the answer has some text, with that text."""
    for token in tokens:
        if token.token if token.text is None else token.text:
            yield token if token.text is None else replace(token, token=token.text, bytes=None)


def log_probability(token: events.Logprob | events.TopLogprob) -> float:
    """As a number, whatever it is."""
    return IMPOSSIBLE if token.logprob is None else token.logprob


def token_bytes(token: events.Logprob | events.TopLogprob) -> list[int]:
    """Of the token's own text."""
    return list(token.token.encode()) if token.bytes is None else list(token.bytes)


def _token(token: events.Logprob) -> TokenLogprob:
    return TokenLogprob(
        token=token.token,
        logprob=log_probability(token),
        bytes=token_bytes(token),
        top_logprobs=[
            TopLogprob(token=each.token, logprob=log_probability(each), bytes=token_bytes(each)) for each in token.top
        ],
    )
