"""Helpers for tests of parsed answers: tokenizers that have only markers, a parser of calls, and joined parts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers.models import WordLevel

from lmwire_protocol import Tool
from lmwire_worker.models.tokenizer import Tokenizer
from lmwire_worker.output_parsing import OutputParser, Syntax, TextFragment
from lmwire_worker.tool_parsers import ToolCallFragment, ToolFormat, WrittenCall

TAGS = ("<think>", "</think>")
GEMMA4 = ("<|channel>", "<channel|>")
XTML = ("<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>")
HARMONY = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>", "<|constrain|>")


def tokenizer_with(*markers: str, **options: Any) -> Tokenizer:
    """Return a tokenizer whose vocabulary is these markers. The options are passed to it."""
    words = {word: index for index, word in enumerate(("?", *markers))}
    return Tokenizer(Backend(WordLevel(words, "?")), special_tokens={"unk_token": "?"}, **options)


def syntax_of(
    *markers: str,
    model_type: str = "llama",
    tools: ToolFormat | None = None,
    reasoning_markers: tuple[str, str] | None = None,
    **options: Any,
) -> Syntax:
    """Return the syntax of a model with these markers."""
    return Syntax.of(tokenizer_with(*markers, **options), model_type, tools, reasoning_markers)


class LetterCalls:
    """A parser of calls such as `a(12)b()`: a name of letters, then arguments in digits. It returns pieces at once.

    In a bare section, it gives up at the first character that cannot be part of a call.
    """

    def __init__(self, tools: Sequence[Any] = (), *, bare: bool = False) -> None:
        self.is_abandoned = False
        self._bare = bare
        self._calls = 0
        self._name = ""
        self._inside = False
        self._open = ""

    def push(self, text: str) -> list[ToolCallFragment]:
        fragments = []
        for character in text:
            if self._bare and not (character.isalnum() or character in "() "):
                self.is_abandoned = True
            self._open += character
            fragments += self._read(character)
        return fragments

    def end(self, closed: bool = True, *, marked: bool = True) -> tuple[list[ToolCallFragment], str]:
        fragments = [ToolCallFragment(self._calls, complete=False)] if self._inside else []
        return fragments, self._open

    def _read(self, character: str) -> Iterable[ToolCallFragment]:
        if self.is_abandoned or (self._name == "!" and not self._inside):
            return
        if not self._inside and character == "(" and self._name:
            self._inside = True
            yield ToolCallFragment(self._calls, name=self._name)
        elif self._inside and character == ")":
            yield ToolCallFragment(self._calls, complete=True)
            self._calls, self._name, self._inside, self._open = self._calls + 1, "", False, ""
        elif self._inside:
            yield ToolCallFragment(self._calls, arguments=character)
        else:
            self._name = self._name + character if character.isalpha() else "!"


@dataclass(frozen=True)
class Letters:
    """The shape of calls for a parser, which makes one parser for each section."""

    parser: Callable[[Sequence[Any]], Any]

    def make_parser(self, tools: Sequence[Any]) -> Any:
        return self.parser(tools)

    def write(self, call: WrittenCall, index: int) -> str:
        return f"{call.name}({''.join(map(str, call.arguments.values()))})"


CALLS = ToolFormat("letters", "<call>", "</call>", Letters(LetterCalls), ends_reasoning=True)
QUOTED = ToolFormat("letters", "<call>", "</call>", Letters(LetterCalls))
TO_THE_END = ToolFormat("letters", "[CALL]", "", Letters(LetterCalls), ends_reasoning=True)
BARE = ToolFormat("letters", "<|call|>", "", Letters(lambda tools: LetterCalls(tools, bare=True)), bare=True)


def cut(text: str, places: Iterable[int]) -> list[str]:
    """Return the text in pieces, cut at these places modulo its length plus one."""
    cuts = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(cuts)]


def parts_of(
    fragments: Iterable[str],
    syntax: Syntax,
    state: str | None = None,
    *,
    finished: bool = True,
    reads_calls: bool = True,
    tools: Sequence[Tool] = (),
) -> list[tuple[str, ...]]:
    """Return the parts into which an answer in these pieces is parsed, with neighbours joined.

    A text is `(channel, text)`, and a call is `("call", number, name, arguments, "whole" | "taken back")`.
    """
    answer = OutputParser(syntax, syntax.initial if state is None else state, tools, reads_calls)
    parts = [part for fragment in fragments for part in answer.push(fragment)]
    return joined(parts + answer.end(finished))


def joined(parts: Iterable[TextFragment | ToolCallFragment]) -> list[tuple[str, ...]]:
    """Join neighbouring texts of one channel, and the pieces of each call."""
    whole: list[list[str]] = []
    for part in parts:
        if isinstance(part, TextFragment):
            if whole and whole[-1][0] == part.channel:
                whole[-1][1] += part.text
            else:
                whole.append([part.channel, part.text])
            continue
        if part.name is not None:
            whole.append(["call", str(part.index), part.name, "", ""])
        call = whole[-1]
        assert call[:2] == ["call", str(part.index)], "a piece of a call that did not begin"
        assert call[4] == "", "a piece of a call that had ended"
        call[3] += part.arguments
        call[4] = {None: "", True: "whole", False: "taken back"}[part.complete]
    return [tuple(part) for part in whole]
