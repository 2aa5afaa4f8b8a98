"""Make the constraint on a request's answers."""

from collections.abc import Set
from functools import cached_property
from itertools import chain, product
from typing import Any, Final

from lmwire_protocol import Chat, Generate, RequestError

from ...models.tokenizer import Tokenizer
from ...output_parsing import Syntax
from ...text_stream.detokenizer import token_bytes
from .answer_grammar import MAX_SPACE, answer_grammar
from .constraint import Constraint, is_forced
from .formats import check_format
from .reasoning_budget import ReasoningBudget
from .size_limits import MAX_CHARACTERS, check_count, invalid_request
from .vocabulary import GrammarError, Vocabulary

MAX_ANSWER_ROOM: Final = 1024
"""Maximum number of tokens that reasoning leaves for a forced answer. It leaves at most half of `max_tokens`."""


class ConstraintFactory:
    """Makes constraints for one model. Slow work happens on first use, and its results are cached.

    Args:
        tokenizer: The model's tokenizer.
        vocab_size: Width of the model's logits.
        ends: The eos tokens. They are allowed only where the grammar can end.
    """

    def __init__(self, tokenizer: Tokenizer, vocab_size: int, ends: set[int]) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = Vocabulary(tokenizer, vocab_size, ends)

    def make_constraint(
        self,
        request: Generate | Chat,
        syntax: Syntax,
        starts_in_reasoning: bool,
        *,
        effort_budget: int | None = None,
        opening: str = "",
    ) -> Constraint | None:
        """Return the constraint on one answer, or None if answers are not constrained. See also `Constraint.fork`.

        Args:
            request: The request: `format`, `prefix`, `tool_choice`, strict `tools` and `reasoning_budget` count.
            syntax: The model's output syntax.
            starts_in_reasoning: The answer starts inside reasoning.
            effort_budget: The budget of reasoning tokens for a request without its own; None without a limit.
            opening: The part of the assistant's turn that the prompt contains.

        Raises:
            RequestError: invalid_request, with the path of the part that is invalid or cannot be enforced; unsupported:
                this model or this installation cannot enforce it.
        """
        try:
            grammar = answer_grammar(request, syntax, starts_in_reasoning, self._vocabulary, opening)
            matcher = None if grammar is None else self._matcher(request, syntax, starts_in_reasoning, grammar.text)
        except RecursionError:
            problem = "a schema is nested too deep; 100 levels always work"
            raise RequestError("invalid_request", problem) from None
        reasoning_budget = self._reasoning_budget(request, syntax, starts_in_reasoning, effort_budget)
        if matcher is None and reasoning_budget is None:
            return None
        start = self._unasked_start(request, syntax, starts_in_reasoning) if matcher is not None else None
        return Constraint(
            matcher,
            reasoning_budget,
            self._vocabulary.mask_words,
            start,
            spaces=frozenset() if start is None else self._spaces,
            drops_space=grammar is not None and grammar.drops_space,
        )

    def _matcher(self, request: Generate | Chat, syntax: Syntax, starts_in_reasoning: bool, grammar: str) -> Any:
        check_count(len(grammar), MAX_CHARACTERS, "characters", "tools" if request.format is None else "format")
        try:
            matcher = self._vocabulary.matcher(grammar)
        except GrammarError as fault:
            if request.format is not None:
                check_format(request.format, self._vocabulary)
            raise RequestError("invalid_request", f"what the answer must be does not compile: {fault}") from None
        begun = "" if starts_in_reasoning or isinstance(request, Generate) else request.prefix
        if syntax.think_end is not None:
            begun = begun.rpartition(syntax.think_end)[2]
        if begun and not matcher.consume_tokens(self._vocabulary.tokens(begun)):
            raise invalid_request(
                "prefix", "does not begin what `format`, `tool_choice` or `tools` allow the answer to be"
            )
        return matcher

    def _unasked_start(self, request: Generate | Chat, syntax: Syntax, starts_in_reasoning: bool) -> int | None:
        """Return the token that opens reasoning which neither the request nor the prompt opens, or None."""
        if starts_in_reasoning or syntax.think_start is None:
            return None
        if isinstance(request, Chat) and (request.reasoning == "on" or request.prefix):
            return None
        tokens = self._vocabulary.tokens(syntax.think_start)
        return tokens[0] if len(tokens) == 1 else None

    def _reasoning_budget(
        self, request: Generate | Chat, syntax: Syntax, starts_in_reasoning: bool, budget: int | None
    ) -> ReasoningBudget | None:
        if isinstance(request, Chat) and request.reasoning_budget is not None:
            budget = request.reasoning_budget
        if is_forced(request) and request.max_tokens is not None:
            room = min(request.max_tokens // 2, MAX_ANSWER_ROOM)
            budget = min(request.max_tokens - room, budget if budget is not None else request.max_tokens)
        if budget is None or syntax.think_start is None or syntax.think_end is None:
            return None
        closing = self._vocabulary.tokens(syntax.think_end)
        return ReasoningBudget(
            syntax.think_start, syntax.think_end, closing, budget, self._token_bytes, open=starts_in_reasoning
        )

    @cached_property
    def _spaces(self) -> Set[int]:
        """Tokens of the white space that may stand before an answer."""
        texts = ("".join(text) for length in range(1, MAX_SPACE + 1) for text in product(" \n", repeat=length))
        return frozenset(chain.from_iterable(map(self._vocabulary.tokens, texts)))

    @cached_property
    def _token_bytes(self) -> Any:
        return token_bytes(self._tokenizer)
