"""A model's vocabulary for llguidance, and the grammars compiled for it."""

import json
import re
from functools import cached_property, lru_cache
from typing import Any, Final

from lmwire_protocol import RequestError
from lmwire_protocol.extras import not_installed

from ...models.tokenizer import Tokenizer
from ...sandbox import LimitExceeded, Sandbox

MAX_COMPILED: Final = 64
"""Maximum number of compiled grammars in the cache."""
MAX_CHECKED: Final = 1024
"""Maximum number of grammars' errors in the cache. It is large because a request may have a hundred tools."""
MAX_ERROR_CHARACTERS: Final = 300
HOST_COMMENT: Final = "// a host's own"
"""A Lark comment in grammars with text that a host wrote."""
MAX_SIMPLE_CHARACTERS: Final = 2**14
EXPENSIVE_KEYWORDS: Final = re.compile(
    r'"(pattern|patternProperties|propertyNames|format|multipleOf|min\w+|max\w+|exclusive\w+|contains|unevaluated\w+|'
    r'dependent\w+|allOf|oneOf|not|if|\$ref|\$dynamicRef)"'
)
"""Keywords of a schema whose compilation can take much more time or memory than their length suggests."""


class GrammarError(Exception):
    """A grammar does not compile. The message has the reason."""


class GrammarTooComplex(GrammarError):
    """Compiling a grammar exceeds a limit of time or memory."""


class Vocabulary:
    """A model's vocabulary. llguidance's tokenizer is built on first use, which takes about 1 s for 150k tokens.

    Args:
        tokenizer: The model's tokenizer.
        vocab_size: Width of the model's logits.
        ends: The eos tokens. A grammar allows them only where it can end.
    """

    def __init__(self, tokenizer: Tokenizer, vocab_size: int, ends: set[int]) -> None:
        self._tokenizer = tokenizer
        self._size = max(vocab_size, len(tokenizer))
        self._ends = sorted(ends)
        self._cached_matcher = lru_cache(MAX_COMPILED)(self._compile)
        self._cached_error = lru_cache(MAX_CHECKED)(self._compile_error)
        self._sandbox = Sandbox(self._describe)  # the process exits when its pipe closes

    @property
    def mask_words(self) -> int:
        """Length of a row's bit mask, in int32."""
        return (self._size + 31) // 32

    def matcher(self, grammar: str, *, is_checked: bool = False) -> Any:
        """Return a grammar's `llguidance.LLMatcher` in its initial state.

        Args:
            grammar: The grammar.
            is_checked: It is a part of a grammar that compiled, so its limits need no check.

        Raises:
            GrammarError: The grammar does not compile.
            RequestError: unsupported, as from `llguidance_tokenizer`.
        """
        return self._cached_matcher(grammar, is_checked).deep_copy()

    def find_error(self, grammar: str) -> GrammarError | None:
        """Return the error of compiling a grammar, or None if it compiles."""
        return self._cached_error(grammar)

    def literal(self, text: str) -> str:
        """Return fixed text in Lark, with special tokens by their ids, because no text matches them."""
        parts = self._special_texts.split(text) if self._specials else [text]
        return " ".join(
            f"<[{self._specials[part]}]>" if part in self._specials else json.dumps(part, ensure_ascii=False)
            for part in parts
            if part
        )

    def find_special_token(self, text: str) -> str | None:
        """Return the first special token in a text, or None. A grammar cannot match it as text."""
        match = self._special_texts.search(text) if self._specials else None
        return match[0] if match else None

    def ends_turn(self, text: str) -> bool:
        """Return whether text is an eos token."""
        return self._specials.get(text) in self._ends

    def tokens(self, text: str) -> list[int]:
        """Return a text's tokens. Texts of special tokens become these tokens."""
        return self._tokenizer.encode(text, add_special_tokens=False)

    @cached_property
    def llguidance_tokenizer(self) -> Any:
        """The `llguidance.LLTokenizer`.

        Raises:
            RequestError: unsupported: llguidance is not installed, or does not support the tokenizer.
        """
        try:
            import llguidance
        except ImportError:
            problem = not_installed("llguidance", "worker", purpose="constrains answers")
            raise RequestError("unsupported", problem) from None
        try:
            return llguidance.LLTokenizer(self._program(), n_vocab=self._size, eos_token=self._ends)
        except BaseException as error:  # llguidance may raise anything here
            problem = f"answers of this model cannot be constrained: llguidance does not take its tokenizer ({error})"
            raise RequestError("unsupported", problem) from None

    @cached_property
    def _specials(self) -> dict[str, int]:
        added = self._tokenizer.added_tokens_decoder
        return {
            str(token): number for number, token in added.items() if self.llguidance_tokenizer.is_special_token(number)
        }

    @cached_property
    def _special_texts(self) -> re.Pattern[str]:
        longest_first = sorted(self._specials, key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    def _compile_error(self, grammar: str) -> GrammarError | None:
        try:
            if is_simple(grammar):
                self._compile(grammar)
            else:
                self._compile_in_sandbox(grammar)
        except GrammarError as fault:
            return fault.with_traceback(None)
        return None

    def _compile(self, grammar: str, is_checked: bool = False) -> Any:
        view = self.llguidance_tokenizer
        from ...sandbox.grammars import compile_grammar

        if not is_checked and not is_simple(grammar):
            self._compile_in_sandbox(grammar)
        matcher, error = compile_grammar(view, grammar)
        if error:
            raise GrammarError(_error_sentence(error))
        return matcher

    def _compile_in_sandbox(self, grammar: str) -> None:
        """Compile a grammar in the sandbox, which limits time and memory.

        Raises:
            GrammarError: The grammar does not compile.
        """
        try:
            error = self._sandbox.ask({"subject": "grammar", "grammar": grammar})["fault"]
        except LimitExceeded as limit:
            raise GrammarTooComplex(f"is too complex: to compile it {limit}") from None
        if error:
            raise GrammarError(_error_sentence(error))

    def _describe(self) -> dict[str, Any]:
        """Return the vocabulary for the sandbox, in the form that llguidance reads from a tokenizer."""
        return {"subject": "vocabulary", "tokenizer": self._program(), "size": self._size, "ends": self._ends}

    def _program(self) -> str:
        """Return the tokenizer as JSON of the tokenizers library.

        Raises:
            ValueError: It is of no such form.
        """
        if self._tokenizer.backend_tokenizer is None:
            raise ValueError("it has code of its own")
        return self._tokenizer.backend_tokenizer.to_str()


def is_simple(grammar: str) -> bool:
    """Return whether compiling a grammar is certainly cheap: it is short, and has no expensive keyword.

    Args:
        grammar: A grammar that was built from schemas. Lark and regular expressions from a host are never simple.
    """
    return (
        len(grammar) <= MAX_SIMPLE_CHARACTERS
        and HOST_COMMENT not in grammar
        and not EXPENSIVE_KEYWORDS.search(grammar.replace("\\", ""))
    )


def _error_sentence(error: str) -> str:
    """Return an error of llguidance as one sentence, without its excerpt of the grammar."""
    if error.startswith("NoExtension"):
        return "no text satisfies it"
    if "regex parse error:" in error:  # the excerpt may be long, and needs several lines
        return f"regex parse error: {error.rpartition('error: ')[2].partition(chr(10))[0]}"
    text = error.partition("\n   1 |")[0].partition("\n<state>")[0]
    text = " ".join(text.rpartition("failed to compile JSON schema: ")[2].split())
    return text if len(text) <= MAX_ERROR_CHARACTERS else f"{text[:MAX_ERROR_CHARACTERS]} …"
