"""Compiles grammars. The sandbox tries them out, and the worker compiles what the sandbox has found to be bearable."""

import re
from typing import Any, Final

import llguidance
import numpy as np

STATES: Final = 50_000
"""States of a grammar's lexer, some 2 kB each: they come as answers go on."""
STEPS: Final = 4
"""Tokens that a grammar is tried with: most of those that prove too complex do so with the first."""
TOO_COMPLEX: Final = re.compile("too many|max is|too large|too big|limit")
"""In the first line of an error: the grammar is right, and no answer could be held to it."""

_vocabularies: list[Any] = []
"""The sandbox's only one."""


def take_vocabulary(tokenizer: str, size: int, ends: list[int]) -> dict[str, Any]:
    """Take the vocabulary that grammars are for."""
    _vocabularies[:] = [llguidance.LLTokenizer(tokenizer, n_vocab=size, eos_token=ends)]
    return {}


def try_out(grammar: str) -> dict[str, Any]:
    """Return why a grammar does not compile; an empty text when it does."""
    return {"fault": compile_grammar(_vocabularies[0], grammar)[1]}


def compile_grammar(vocabulary: Any, grammar: str) -> tuple[Any, str]:
    """Return a grammar's matcher at its start, and the library's words for what is wrong with it, if anything is.

    Args:
        vocabulary: An `llguidance.LLTokenizer`.
        grammar: Lark, or the library's JSON.
    """
    limits = llguidance.LLParserLimits(max_lexer_states=STATES)
    matcher = llguidance.LLMatcher(vocabulary, grammar, log_level=0, limits=limits)
    if not matcher.is_error():
        matcher.compute_bitmask()  # finds more faults, and builds tables that copies share
    if matcher.is_error():
        return matcher, matcher.get_error()
    return matcher, _walk(matcher.deep_copy())


def _walk(matcher: Any) -> str:
    """Let a matcher take a few tokens that it allows; return the limit that it comes to, if it does."""
    for _ in range(STEPS):
        bits = np.frombuffer(matcher.compute_bitmask(), np.uint8)
        allowed = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        if matcher.is_error() or matcher.is_stopped() or not len(allowed):
            break
        matcher.consume_token(int(allowed[0]))
    error = matcher.get_error() if matcher.is_error() else ""
    return error if TOO_COMPLEX.search(error.partition("\n")[0]) else ""
