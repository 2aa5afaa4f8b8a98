"""The tokens of a prompt, assembled from the deltas in which they arrive."""

from collections.abc import Sequence
from typing import NamedTuple

from ..protocol.deltas import TokenDelta, ToolCallDelta


class Tokens(NamedTuple):
    """The tokens of a prompt."""

    ids: list[int]
    text: str
    """The text of the tokens. For a conversation, it is the prompt that the chat template makes."""


def assemble_tokens(deltas: Sequence[TokenDelta | ToolCallDelta]) -> Tokens:
    """Assemble the tokens of a `tokenize` request that has ended."""
    tokens = [delta for delta in deltas if isinstance(delta, TokenDelta)]
    ids = [token_id for delta in tokens for token_id in delta.token_ids]
    return Tokens(ids, "".join(delta.token for delta in tokens))
