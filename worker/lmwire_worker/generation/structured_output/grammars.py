"""From a request to what its answers are held to."""

from functools import cached_property
from typing import Any

from mlx_lm.tokenizer_utils import TokenizerWrapper

from lmwire_protocol import Chat, Generate, RequestError

from ...output_parsing import Syntax
from ...text_stream.detokenizer import token_bytes
from .answer import answer_grammar
from .bounds import CHARACTERS, check_count, invalid
from .constraint import Constraint
from .formats import check_format
from .reasoning_budget import Thought
from .vocabulary import GrammarFault, Vocabulary


class Grammars:
    """A model's constraints. Cheap to make: what takes time is done on first use, and kept.

    Args:
        tokenizer: The model's own.
        vocab_size: The width of the model's logits.
        ends: The tokens that end a turn. They are allowed exactly where a grammar may end.
    """

    def __init__(self, tokenizer: TokenizerWrapper, vocab_size: int, ends: set[int]) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = Vocabulary(tokenizer, vocab_size, ends)

    def prepare(self) -> None:
        """Does now what the first constraint would wait for: about a second, in which no other thread runs.

        Raises:
            RequestError: unsupported: no answer of this model can be held to a grammar.
        """
        _ = self._vocabulary.view

    def constraint(self, request: Generate | Chat, syntax: Syntax, thinking: bool) -> Constraint | None:
        """What an answer to the request is held to; None when it is free. For one answer: see `Constraint.fork`.

        Args:
            request: What counts are its `format`, `prefix`, `tool_choice`, the strict ones among its `tools`, and its
                `reasoning_budget`.
            syntax: The model's.
            thinking: The answer starts inside a thought.

        Raises:
            RequestError: invalid_request, with the path of what is wrong in a schema, an expression or a grammar, or
                cannot be enforced; unsupported, when this model or this installation cannot enforce it.
        """
        try:
            matcher = self._matcher(request, syntax, thinking)
        except RecursionError:
            problem = "a schema is nested too deep; 100 levels always work"
            raise RequestError("invalid_request", problem) from None
        thought = self._thought(request, syntax, thinking)
        if matcher is None and thought is None:
            return None
        return Constraint(matcher, thought, self._vocabulary.words)

    def _matcher(self, request: Generate | Chat, syntax: Syntax, thinking: bool) -> Any:
        grammar = answer_grammar(request, syntax, thinking, self._vocabulary)
        if grammar is None:
            return None
        check_count(len(grammar), CHARACTERS, "characters", "tools" if request.format is None else "format")
        try:
            matcher = self._vocabulary.matcher(grammar)
        except GrammarFault as fault:
            if request.format is not None:
                check_format(request.format, self._vocabulary)
            raise RequestError("invalid_request", f"what the answer must be does not compile: {fault}") from None
        begun = "" if thinking or isinstance(request, Generate) else request.prefix
        if syntax.think_end is not None:
            begun = begun.rpartition(syntax.think_end)[2]
        if begun and not matcher.consume_tokens(self._vocabulary.tokens(begun)):
            raise invalid("prefix", "does not begin what `format`, `tool_choice` or `tools` allow the answer to be")
        return matcher

    def _thought(self, request: Generate | Chat, syntax: Syntax, thinking: bool) -> Thought | None:
        budget = request.reasoning_budget if isinstance(request, Chat) else None
        if budget is None or syntax.think_start is None or syntax.think_end is None:
            return None
        closing = self._vocabulary.tokens(syntax.think_end)
        return Thought(syntax.think_start, syntax.think_end, closing, budget, self._token_bytes, open=thinking)

    @cached_property
    def _token_bytes(self) -> Any:
        return token_bytes(self._tokenizer)
