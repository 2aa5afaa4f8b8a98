"""How a model marks up its answers, found from its tokenizer."""

from collections.abc import Mapping
from dataclasses import dataclass

from mlx_lm.tokenizer_utils import TokenizerWrapper

from ..text_stream.string_matcher import Scanner
from ..tool_parsers import ToolFormat
from . import harmony
from .families import find_states, find_thought
from .states import CONTENT, HEADER, State


@dataclass(frozen=True, slots=True)
class Syntax:
    """A model's way to mark up its answers."""

    states: Mapping[str, State]
    initial: str
    """The state in which the assistant's turn begins."""
    think_start: str | None
    """What opens a thought; None for a model that has no thoughts."""
    think_end: str | None
    """What closes it."""
    tools: ToolFormat | None
    """How it writes calls; None for a model that knows no tools."""

    @classmethod
    def of(cls, tokenizer: TokenizerWrapper, model_type: str, tools: ToolFormat | None) -> "Syntax":
        """The syntax of a model, by the markers in its vocabulary."""
        vocabulary = tokenizer.get_vocab().keys()  # a tenth of a second's work for 150k tokens
        if model_type == "gpt_oss" and vocabulary >= harmony.MARKERS:
            return cls(harmony.STATES, HEADER, harmony.THINK_START, harmony.THINK_END, tools)
        thought = find_thought(tokenizer, vocabulary)
        states = find_states(tokenizer, vocabulary, thought, tools)
        return cls(states, tokenizer.response_initial_state or CONTENT, *(thought or (None, None)), tools)

    @property
    def thinks(self) -> bool:
        """Whether its answers can hold thoughts."""
        return self.think_start is not None

    def start_state(self, opening: str) -> str:
        """The state that an answer starts in: `CONTENT`, `REASONING`, or one of a message's header.

        Args:
            opening: What the prompt already holds of the assistant's turn: the template's part, and any prefix.
        """
        name, rest = self.initial, opening
        while True:
            scanner = Scanner(self.states[name].markers)
            _, marker = scanner.push(rest)
            if marker is None:
                return name
            target = self.states[name].edges[marker]
            name = self.without_call(name) if self.states[target].kind == "call" else target
            rest = scanner.rest

    def without_call(self, name: str) -> str:
        """The state behind a call's start marker, where that is text."""
        return CONTENT if self.states[name].kind == "header" else name
