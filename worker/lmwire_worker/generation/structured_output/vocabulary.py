"""A model's vocabulary as llguidance sees it, and the grammars compiled for it."""

import json
import re
from copy import copy
from functools import cached_property, lru_cache
from typing import Any, Final

from mlx_lm.tokenizer_utils import TokenizerWrapper

from lmwire_protocol import RequestError

from ...sandbox import Exhausted, Sandbox

COMPILED: Final = 64
"""Grammars kept, the last used."""
CHECKED: Final = 1024
"""Grammars of which it is kept whether they compile, the last used: a request may bring a hundred tools."""
FAULT_CHARACTERS: Final = 300
FOREIGN: Final = "// a host's own"
"""A comment of Lark in grammars, and around expressions, that a host wrote."""
PLAIN_CHARACTERS: Final = 2**14
LABOURED: Final = re.compile(
    r'"(pattern|patternProperties|propertyNames|format|multipleOf|min\w+|max\w+|exclusive\w+|contains|unevaluated\w+|'
    r'dependent\w+|allOf|oneOf|not|if|\$ref|\$dynamicRef)"'
)
"""What a schema can hold that a compiler may multiply, or count up to."""


class GrammarFault(Exception):
    """A grammar that does not compile. The text says why."""


class GrammarTooComplex(GrammarFault):
    """A grammar whose compiling comes to a limit of time or memory."""


class Vocabulary:
    """Cheap to make. The view of the tokenizer, about a second's work for 150k tokens, is built on first use.

    Args:
        tokenizer: The model's own.
        vocab_size: The width of the model's logits.
        ends: The tokens that end a turn. A grammar allows them exactly where it may end.
    """

    def __init__(self, tokenizer: TokenizerWrapper, vocab_size: int, ends: set[int]) -> None:
        self._tokenizer = tokenizer
        self._size = max(vocab_size, len(tokenizer))
        self._ends = sorted(ends)
        self._compiled = lru_cache(COMPILED)(self._compile)
        self._faults = lru_cache(CHECKED)(self._find_fault)
        self._sandbox = Sandbox(self._describe)  # its process ends with it: it reads the end of its pipe

    @property
    def words(self) -> int:
        """The length of a row's bit mask, in int32."""
        return (self._size + 31) // 32

    def matcher(self, grammar: str) -> Any:
        """A grammar's `llguidance.LLMatcher`, at the start.

        Raises:
            GrammarFault: it does not compile.
            RequestError: unsupported, as from `view`.
        """
        return self._compiled(grammar).deep_copy()

    def fault(self, grammar: str) -> GrammarFault | None:
        """Return why a grammar does not compile; None when it does."""
        return self._faults(grammar)

    def literal(self, text: str) -> str:
        """Fixed text as Lark writes it: special tokens by their ids, as no text ever stands for one."""
        parts = self._special_texts.split(text) if self._specials else [text]
        return " ".join(
            f"<[{self._specials[part]}]>" if part in self._specials else json.dumps(part, ensure_ascii=False)
            for part in parts
            if part
        )

    def special_in(self, text: str) -> str | None:
        """The first special token that text holds: no grammar can ask for it as text."""
        match = self._special_texts.search(text) if self._specials else None
        return match[0] if match else None

    def ends_turn(self, text: str) -> bool:
        """Whether text is an end-of-turn token."""
        return self._specials.get(text) in self._ends

    def tokens(self, text: str) -> list[int]:
        """Text's tokens, special ones included."""
        return self._tokenizer.encode(text, add_special_tokens=False)

    @cached_property
    def view(self) -> Any:
        """The `llguidance.LLTokenizer`.

        Raises:
            RequestError: unsupported: llguidance is missing, or cannot take such a tokenizer.
        """
        try:
            import llguidance.hf
        except ImportError:
            problem = "constrained answers need llguidance, which is not installed; install lmwire[worker]"
            raise RequestError("unsupported", problem) from None
        try:
            return llguidance.hf.from_tokenizer(self._tokenizer._tokenizer, n_vocab=self._size, eos_token=self._ends)
        except Exception as error:  # whatever its tokenizers raise
            problem = f"answers of this model cannot be constrained: llguidance does not take its tokenizer ({error})"
            raise RequestError("unsupported", problem) from None

    @cached_property
    def _specials(self) -> dict[str, int]:
        added = self._tokenizer.added_tokens_decoder
        return {str(token): number for number, token in added.items() if self.view.is_special_token(number)}

    @cached_property
    def _special_texts(self) -> re.Pattern[str]:
        longest_first = sorted(self._specials, key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    def _find_fault(self, grammar: str) -> GrammarFault | None:
        try:
            if is_plain(grammar):
                self._compile(grammar)
            else:
                self._try(grammar)
        except GrammarFault as fault:
            return fault.with_traceback(None)
        return None

    def _compile(self, grammar: str) -> Any:
        view = self.view
        from ...sandbox.grammars import compile_grammar

        if not is_plain(grammar):
            self._try(grammar)
        matcher, error = compile_grammar(view, grammar)
        if error:
            raise GrammarFault(_sentence(error))
        return matcher

    def _try(self, grammar: str) -> None:
        """Compile a grammar where that can take as long, and as much memory, as it likes.

        Raises:
            GrammarFault: It does not compile.
        """
        try:
            error = self._sandbox.ask({"subject": "grammar", "grammar": grammar})["fault"]
        except Exhausted as limit:
            raise GrammarTooComplex(f"is too complex: to compile it {limit}") from None
        if error:
            raise GrammarFault(_sentence(error))

    def _describe(self) -> dict[str, Any]:
        """Return what the sandbox has to know, as llguidance itself reads it off a tokenizer."""
        tokenizer = copy(self._tokenizer._tokenizer.backend_tokenizer)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return {"subject": "vocabulary", "tokenizer": tokenizer.to_str(), "size": self._size, "ends": self._ends}


def is_plain(grammar: str) -> bool:
    """Return whether compiling a grammar certainly takes little: it is short, and has no part that stands for much.

    Args:
        grammar: As it is made here of a JSON schema, or of tools' schemas. Lark of a host's is never plain.
    """
    return (
        len(grammar) <= PLAIN_CHARACTERS and FOREIGN not in grammar and not LABOURED.search(grammar.replace("\\", ""))
    )


def _sentence(error: str) -> str:
    """An error of llguidance without its picture of the grammar."""
    if error.startswith("NoExtension"):
        return "there is no text that satisfies it"
    if "regex parse error:" in error:  # its picture may be long, and does not survive on one line
        return f"regex parse error: {error.rpartition('error: ')[2].partition(chr(10))[0]}"
    text = error.partition("\n   1 |")[0].partition("\n<state>")[0]
    text = " ".join(text.rpartition("failed to compile JSON schema: ")[2].split())
    return text if len(text) <= FAULT_CHARACTERS else f"{text[:FAULT_CHARACTERS]} …"
