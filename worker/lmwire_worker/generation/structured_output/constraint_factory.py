"""Make the constraint on a request's answers."""

from functools import cached_property
from typing import Any, Final

from lmwire_protocol import Chat, Generate, RequestError

from ...models.tokenizer import Tokenizer
from ...output_parsing import Syntax
from ...text_stream.detokenizer import token_bytes
from .answer_grammar import MAX_SPACE, answer_grammar
from .constraint import Constraint, ReasoningBudget
from .formats import check_format
from .size_limits import MAX_CHARACTERS, check_count, invalid_request
from .vocabulary import HOST_COMMENT, GrammarError, Vocabulary

MAX_ANSWER_ROOM: Final = 1024
"""Maximum number of tokens that reasoning leaves for a forced answer. It leaves at most half of the answer."""


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
        room: int | None = None,
    ) -> Constraint | None:
        """Return the constraint on one answer, or None if answers are not constrained. See also `Constraint.fork`.

        Args:
            request: The request: `format`, `prefix`, `tool_choice`, strict `tools` and `reasoning_budget` count.
            syntax: The model's output syntax.
            starts_in_reasoning: The answer starts inside reasoning.
            effort_budget: The budget of reasoning tokens for a request without its own; None without a limit.
            opening: The part of the assistant's turn that the prompt contains.
            room: Tokens that the context has for the answer; None without a limit.

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
        limits = [most for most in (request.max_tokens, room) if most is not None]
        most = min(limits, default=None)
        reasoning_budget = self._reasoning_budget(request, syntax, starts_in_reasoning, effort_budget, most)
        if matcher is None and reasoning_budget is None:
            return None
        plain = None
        if grammar is not None and grammar.plain is not None:
            plain = self._compile(request, grammar.plain, is_checked=True)
        return Constraint(
            matcher,
            reasoning_budget,
            self._vocabulary.mask_words,
            plain=plain,
            start_tokens=MAX_SPACE + len((syntax.think_start or "").encode()),
            drops_space=grammar is not None and grammar.drops_space,
        )

    def _matcher(self, request: Generate | Chat, syntax: Syntax, starts_in_reasoning: bool, grammar: str) -> Any:
        check_count(len(grammar), MAX_CHARACTERS, "characters", "tools" if request.format is None else "format")
        matcher = self._compile(request, grammar)
        may_be_empty = HOST_COMMENT in grammar or "$ref" in grammar
        if request.format is not None and may_be_empty and syntax.has_reasoning:
            check_format(request.format, self._vocabulary)  # after reasoning, a format without any text compiles too
        begun = "" if starts_in_reasoning or isinstance(request, Generate) else request.prefix
        if syntax.think_end is not None:
            begun = begun.rpartition(syntax.think_end)[2]
        if begun and not matcher.consume_tokens(self._vocabulary.tokens(begun)):
            raise invalid_request(
                "prefix", "does not begin what `format`, `tool_choice` or `tools` allow the answer to be"
            )
        return matcher

    def _compile(self, request: Generate | Chat, grammar: str, *, is_checked: bool = False) -> Any:
        """Return the matcher of a grammar; see `Vocabulary.matcher`. Raises RequestError: invalid_request."""
        try:
            return self._vocabulary.matcher(grammar, is_checked=is_checked)
        except GrammarError as fault:
            if request.format is not None:
                check_format(request.format, self._vocabulary)
            raise RequestError("invalid_request", f"what the answer must be does not compile: {fault}") from None

    def _reasoning_budget(
        self,
        request: Generate | Chat,
        syntax: Syntax,
        starts_in_reasoning: bool,
        budget: int | None,
        most: int | None,
    ) -> ReasoningBudget | None:
        """Return the budget of a request, or None.

        Args:
            request: The request.
            syntax: The model's output syntax.
            starts_in_reasoning: The answer starts inside reasoning.
            budget: The budget of a request without its own; None without a limit.
            most: Maximum number of tokens of the answer; None without a limit.
        """
        if isinstance(request, Chat) and request.reasoning_budget is not None:
            budget = request.reasoning_budget
        if request.is_forced and most is not None:
            budget = min(most - min(most // 2, MAX_ANSWER_ROOM), most if budget is None else budget)
        if budget is None or syntax.think_start is None or syntax.think_end is None:
            return None
        closing = self._vocabulary.tokens(syntax.think_end)
        form = syntax.tools
        has_calls = form is not None and form.ends_reasoning and isinstance(request, Chat) and request.callable_tools
        call_starts = (form.start, *form.lost_starts) if form is not None and has_calls else ()
        return ReasoningBudget(
            syntax.think_start,
            syntax.think_end,
            closing,
            budget,
            self._token_bytes,
            open=starts_in_reasoning,
            call_starts=call_starts,
        )

    @cached_property
    def _token_bytes(self) -> Any:
        return token_bytes(self._tokenizer)
