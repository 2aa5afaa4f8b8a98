"""Prefills of a prompt by itself, chunk by chunk: one with images or sounds, or one whose tokens are scored."""

from typing import Any, Final, Protocol

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache

from lmwire_protocol.events import Logprob

from .sampling.logprobs import LogprobFormatter, score_tokens

MAX_LOGITS_BYTES: Final = 64 << 20
"""Maximum size of a chunk's logits as float32, in bytes."""


class SoloPrefill(Protocol):
    """The prefill of a prompt up to its last media input, or up to its last token."""

    cache: list[Any]
    """The KV cache of the tokens that are computed."""
    done: int
    """Number of tokens in the cache."""
    end: int
    """Number of tokens to compute in all."""

    def advance(self, size: int) -> int:
        """Encode one media input, or compute at most `size` tokens; return the number of tokens computed."""
        ...


class PromptScoring:
    """The prefill of a prompt up to its last token, with the log-probability of each token; see `SoloPrefill`.

    The prefix cache cannot help, since it holds no logits. Only the logits of one chunk are in memory at a time.

    Args:
        network: The model.
        tokens: The prompt.
        vocab_size: Number of tokens of the model.
        alternatives: Number of most probable tokens to report in each place.
        describe: Turns a log-probability into the form of the protocol.
    """

    def __init__(
        self, network: nn.Module, tokens: list[int], vocab_size: int, alternatives: int, describe: LogprobFormatter
    ) -> None:
        self.cache: list[Any] = make_prompt_cache(network)
        self.done = 0
        """Number of tokens that the caches hold."""
        self.end = len(tokens) - 1
        self._network: Any = network
        self._tokens = tokens
        self._alternatives = alternatives
        self._describe = describe
        self._max_chunk = max(1, MAX_LOGITS_BYTES // (4 * vocab_size))
        self._new = [describe.without_logprob(tokens[0])]

    def advance(self, size: int) -> int:
        """Compute at most `size` tokens, and return the number of tokens computed."""
        start, stop = self.done, min(self.done + min(size, self._max_chunk), self.end)
        if start == stop:
            return 0
        logits = self._network(mx.array([self._tokens[start:stop]]), cache=self.cache)[0]
        handles = score_tokens(logits, self._tokens[start + 1 : stop + 1], self._alternatives)
        self._new += map(self._describe, handles)
        mx.eval([layer.state for layer in self.cache])
        self.done = stop
        return stop - start

    def take(self) -> list[Logprob]:
        """Return the log-probabilities since the last call. That of the first token is absent."""
        new, self._new = self._new, []
        return new
