"""Parts of answers that several APIs share: log-probabilities, and the arguments of tool calls that may be cut off."""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lmwire import TokenDelta, ToolCallDelta
from lmwire_protocol import events

from ..limits import ShortList, TokenList

ZERO_PROBABILITY = -9999.0
"""OpenAI's value for the logarithm of probability 0, which JSON cannot represent."""
_CLOSING: Final = "} \t\r\n"
_OPENING: Final = "{["
_CLOSERS: Final = {"{": "}", "[": "]"}


class TopLogprob(Struct, kw_only=True):
    """A probable token at one position."""

    token: str
    logprob: float
    bytes: TokenList[int]


class TokenLogprob(Struct, kw_only=True):
    """A token of the answer."""

    token: str
    logprob: float
    bytes: TokenList[int]
    """UTF-8 of the token. Only the bytes of several tokens together need to be valid text."""
    top_logprobs: ShortList[TopLogprob]


class Logprobs(Struct, kw_only=True):
    """The tokens of an answer."""

    content: list[TokenLogprob]
    refusal: None = None


def content_logprobs(delta: TokenDelta | ToolCallDelta) -> list[TokenLogprob]:
    """Return a delta's tokens with text in the content. Joined, they are the content."""
    if not delta.logprobs or delta.call or delta.channel != "content":
        return []
    return [_to_token_logprob(each) for each in visible_tokens(delta.logprobs)]


def visible_tokens(tokens: Iterable[events.Logprob]) -> Iterator[events.Logprob]:
    """Yield the tokens that add text to the answer, with that text."""
    for token in tokens:
        if token.token if token.text is None else token.text:
            yield token if token.text is None else replace(token, token=token.text, bytes=None)


def log_probability(token: events.Logprob | events.TopLogprob) -> float:
    """Return the logarithm as a finite number."""
    return ZERO_PROBABILITY if token.logprob is None else token.logprob


def token_bytes(token: events.Logprob | events.TopLogprob) -> list[int]:
    """Return the UTF-8 of the token's own text."""
    return list(token.token.encode()) if token.bytes is None else list(token.bytes)


def _to_token_logprob(token: events.Logprob) -> TokenLogprob:
    return TokenLogprob(
        token=token.token,
        logprob=log_probability(token),
        bytes=token_bytes(token),
        top_logprobs=[
            TopLogprob(token=each.token, logprob=log_probability(each), bytes=token_bytes(each)) for each in token.top
        ],
    )


class ArgumentsBuffer:
    """The arguments of a streamed call. Closing braces that would make partial arguments valid are held back."""

    def __init__(self) -> None:
        self._has_sent = False
        self._held = ""

    def next_delta(self, arguments: str, complete: bool | None) -> str:
        """Return the text that can be sent now.

        Args:
            arguments: The next part of the arguments.
            complete: Whether the call is complete; None while it continues.
        """
        text = self._held + arguments
        if complete:
            return text
        sendable = text.rstrip(_CLOSING)
        self._held = text[len(sendable) :]
        if complete is False and not (sendable or self._has_sent):
            return "{"  # an empty text would look like a call without arguments
        self._has_sent = self._has_sent or bool(sendable)
        return sendable


def complete_members(arguments: str) -> str:
    """Return the JSON text of an object with only the complete members of partial arguments.

    Args:
        arguments: The start of an object's JSON text.
    """
    whole, open, in_string, escaped = "{}", "", False, False
    for place, character in enumerate(arguments):
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in _OPENING:
            open += character
            whole = _close_brackets(arguments[: place + 1], open)
        elif character in "}]":
            open = open[:-1]
            whole = _close_brackets(arguments[: place + 1], open)
        elif character == ",":
            whole = _close_brackets(arguments[:place], open)
    return whole


def _close_brackets(text: str, open: str) -> str:
    return text + "".join(_CLOSERS[bracket] for bracket in reversed(open))
