"""The states of models that write tags into their text, and of those whose messages mlx-lm describes."""

from collections.abc import Sequence, Set
from typing import Final

from mlx_lm.tokenizer_utils import TokenizerWrapper

from ..tool_parsers import ToolFormat
from .states import BARE_CALL, CALL, CONTENT, INTERRUPTED, REASONING, THOUGHT_CALL, State

_MORE_THOUGHTS: Final = (
    ("[THINK]", "[/THINK]"),  # Magistral
    ("<seed:think>", "</seed:think>"),  # Seed-OSS
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command R7B, Command A
    ("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
)
"""Markers around a thought, besides those that mlx-lm knows."""

_MORE_STRUCTURE: Final = ("<|START_RESPONSE|>", "<|END_RESPONSE|>")  # Command R7B, Command A
"""Markers around content, likewise."""

_NAMES: Final = {"normal": CONTENT, "reasoning": REASONING, "tool": CALL}
"""mlx-lm's names of states. Any other of its states is a header."""

Thought = tuple[str, str]
"""The markers around a thought."""

Edges = dict[str, dict[str, str]]
"""For each state its markers, and the states that they lead to."""


def find_thought(tokenizer: TokenizerWrapper, vocabulary: Set[str]) -> Thought | None:
    """The markers of a model's thoughts, if it has thoughts."""
    messages = tokenizer.response_transitions
    for marker, target in (edge for edges in messages.values() for edge in edges):
        if target == "reasoning":
            return marker, messages[target][0][0]
    if tokenizer.think_start is not None and tokenizer.think_end is not None:
        return tokenizer.think_start, tokenizer.think_end
    return next((pair for pair in _MORE_THOUGHTS if vocabulary >= set(pair)), None)


def find_states(
    tokenizer: TokenizerWrapper, vocabulary: Set[str], thought: Thought | None, tools: ToolFormat | None
) -> dict[str, State]:
    """The states of a model: those of its messages, or those that its markers make."""
    edges: Edges = {CONTENT: {}, CALL: {}, THOUGHT_CALL: {}, BARE_CALL: {}}
    if tools is not None and tools.end:
        edges[CALL] = {tools.end: CONTENT}
        edges[THOUGHT_CALL] = {tools.end: INTERRUPTED}
    if tokenizer.response_transitions:
        edges |= _messages(tokenizer)
    else:
        structure = [*tokenizer.structural_markers, *(marker for marker in _MORE_STRUCTURE if marker in vocabulary)]
        edges |= _tags(thought, tools, structure)
    return {name: _state(name, targets) for name, targets in edges.items()}


def _messages(tokenizer: TokenizerWrapper) -> Edges:
    return {
        _NAMES.get(name, name): {marker: _NAMES.get(target, target) for marker, target in edges}
        for name, edges in tokenizer.response_transitions.items()
    }


def _tags(thought: Thought | None, tools: ToolFormat | None, structure: Sequence[str]) -> Edges:
    content = dict.fromkeys(structure, CONTENT)
    call = tools.start if tools is not None else ""
    if call:
        content[call] = CALL
    if thought is None:
        return {CONTENT: content}
    start, end = thought
    content[start] = REASONING
    reasoning = {end: CONTENT} | ({call: THOUGHT_CALL} if call else {})
    return {CONTENT: content, REASONING: reasoning, INTERRUPTED: {end: CONTENT} | content}


def _state(name: str, edges: dict[str, str]) -> State:
    channel = "reasoning" if name in (REASONING, THOUGHT_CALL) else "content"
    if name in (CALL, THOUGHT_CALL, BARE_CALL):
        return State(edges, channel, "call")
    return State(edges, channel, "text" if name in (CONTENT, REASONING, INTERRUPTED) else "header")
