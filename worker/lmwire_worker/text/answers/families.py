"""The states of models that write tags into their text, and of those whose messages mlx-lm describes."""

from collections.abc import Sequence
from typing import Final

from mlx_lm.tokenizer_utils import TokenizerWrapper

from ..tools import ToolFormat
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

Edges = dict[str, dict[str, str]]
"""For each state its markers, and the states that they lead to."""


def find_thought(tokenizer: TokenizerWrapper) -> tuple[str, str] | None:
    """The markers around a thought, if the model has thoughts."""
    if tokenizer.think_start is not None and tokenizer.think_end is not None:
        return tokenizer.think_start, tokenizer.think_end
    for edges in tokenizer.response_transitions.values():
        for marker, target in edges:
            if target == "reasoning":
                return marker, tokenizer.response_transitions[target][0][0]
    vocabulary = tokenizer.get_vocab().keys()
    return next((pair for pair in _MORE_THOUGHTS if vocabulary >= set(pair)), None)


def find_states(
    tokenizer: TokenizerWrapper, thought: tuple[str, str] | None, tools: ToolFormat | None
) -> dict[str, State]:
    """The states of a model, as its markers for thoughts, calls and structure make them."""
    vocabulary = tokenizer.get_vocab().keys()
    structure = [*tokenizer.structural_markers, *(marker for marker in _MORE_STRUCTURE if marker in vocabulary)]
    messages = {
        _NAMES.get(name, name): {marker: _NAMES.get(target, target) for marker, target in edges}
        for name, edges in tokenizer.response_transitions.items()
    }
    edges = _tags(thought, tools, structure)
    if any(CALL in targets.values() for targets in messages.values()):
        edges[CONTENT].pop(tools.start if tools else "", None)  # its messages say where calls are
    for name, targets in messages.items():
        edges.setdefault(name, {}).update(targets)
    if thought is not None:
        edges[INTERRUPTED] = {thought[1]: CONTENT} | edges[CONTENT]
    return {name: _state(name, targets) for name, targets in edges.items()}


def _tags(thought: tuple[str, str] | None, tools: ToolFormat | None, structure: Sequence[str]) -> Edges:
    content = dict.fromkeys(structure, CONTENT)
    edges: Edges = {CONTENT: content, CALL: {}, THOUGHT_CALL: {}, BARE_CALL: {}}
    if tools is not None and tools.end:
        edges[CALL] = {tools.end: CONTENT}
        edges[THOUGHT_CALL] = {tools.end: INTERRUPTED}
    if thought is not None:
        content[thought[0]] = REASONING
        edges[REASONING] = {thought[1]: CONTENT}
    if tools is not None and tools.start:
        content[tools.start] = CALL
        if thought is not None:
            edges[REASONING][tools.start] = THOUGHT_CALL
    return edges


def _state(name: str, edges: dict[str, str]) -> State:
    if name in (CALL, THOUGHT_CALL, BARE_CALL):
        return State(edges, "reasoning" if name == THOUGHT_CALL else "content", "call")
    if name in (CONTENT, REASONING, INTERRUPTED):
        return State(edges, "reasoning" if name == REASONING else "content")
    return State(edges, kind="header")
