"""Compile grammars. The sandbox compiles each grammar first, and the worker those that stay within the limits."""

import re
from typing import Any, Final

import llguidance
import numpy as np

MAX_LEXER_STATES: Final = 50_000
"""Maximum number of states of a grammar's lexer, about 2 kB each. Answers add states as they grow."""
TRIAL_TOKENS: Final = 4
"""Number of tokens to try a grammar with. Most grammars that are too complex fail at the first token."""
TOO_COMPLEX: Final = re.compile("too many|max is|too large|too big|limit")
"""Matches the first line of an error that means: the grammar is valid, but too complex for any answer."""

_vocabularies: list[Any] = []
"""The sandbox's vocabulary: at most one."""


def set_vocabulary(tokenizer: str, size: int, ends: list[int]) -> dict[str, Any]:
    """Set the vocabulary that grammars are compiled for.

    Args:
        tokenizer: The tokenizer, as JSON of the tokenizers library.
        size: Size of the vocabulary, in tokens.
        ends: The eos tokens.
    """
    _vocabularies[:] = [llguidance.LLTokenizer(tokenizer, n_vocab=size, eos_token=ends)]
    return {}


def check_grammar(grammar: str) -> dict[str, Any]:
    """Return the error of compiling a grammar, as `fault`; empty if it compiles."""
    return {"fault": compile_grammar(_vocabularies[0], grammar)[1]}


def compile_grammar(vocabulary: Any, grammar: str) -> tuple[Any, str]:
    """Return a grammar's matcher in its initial state, and llguidance's error message, empty if it compiles.

    Args:
        vocabulary: An `llguidance.LLTokenizer`.
        grammar: The grammar, in Lark or in llguidance's JSON.
    """
    limits = llguidance.LLParserLimits(max_lexer_states=MAX_LEXER_STATES)
    matcher = llguidance.LLMatcher(vocabulary, grammar, log_level=0, limits=limits)
    if not matcher.is_error():
        matcher.compute_bitmask()  # finds more faults, and builds tables that copies share
    if matcher.is_error():
        return matcher, matcher.get_error()
    return matcher, _find_limit(matcher.deep_copy())


def _find_limit(matcher: Any) -> str:
    """Give a matcher a few tokens that it allows, and return the error if it exceeds a limit."""
    for _ in range(TRIAL_TOKENS):
        bits = np.frombuffer(matcher.compute_bitmask(), np.uint8)
        allowed = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        if matcher.is_error() or matcher.is_stopped() or not len(allowed):
            break
        matcher.consume_token(int(allowed[0]))
    error = matcher.get_error() if matcher.is_error() else ""
    return error if TOO_COMPLEX.search(error.partition("\n")[0]) else ""
