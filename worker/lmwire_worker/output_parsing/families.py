"""The states of models that write markers into their text, and of models whose messages mlx-lm describes."""

from collections.abc import Sequence, Set
from typing import Final

from ..models.tokenizer import Tokenizer
from ..tool_parsers import ToolFormat
from .states import BARE_CALL, CALL, CONTENT, INTERRUPTED, REASONING, REASONING_CALL, State

_MORE_REASONING_MARKERS: Final = (
    ("[THINK]", "[/THINK]"),  # Magistral
    ("<seed:think>", "</seed:think>"),  # Seed-OSS
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command R7B, Command A
    ("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
)
"""Markers around reasoning that mlx-lm does not know."""

_MORE_CONTENT_MARKERS: Final = ("<|START_RESPONSE|>", "<|END_RESPONSE|>")  # Command R7B, Command A
"""Markers around content that mlx-lm does not know."""

_STATE_NAMES: Final = {"normal": CONTENT, "reasoning": REASONING, "tool": CALL}
"""State names of mlx-lm. Its other states are headers."""

ReasoningMarkers = tuple[str, str]
"""The start marker and the end marker of reasoning."""

Transitions = dict[str, dict[str, str]]
"""For each state, its markers and the states that they lead to."""


def find_reasoning_markers(tokenizer: Tokenizer, vocabulary: Set[str]) -> ReasoningMarkers | None:
    """Return the markers around a model's reasoning, or None for a model without reasoning.

    Args:
        tokenizer: The model's tokenizer.
        vocabulary: The texts of all tokens.
    """
    messages = tokenizer.response_transitions
    for marker, target in (edge for edges in messages.values() for edge in edges):
        if target == "reasoning":
            return marker, messages[target][0][0]
    if tokenizer.think_start is not None and tokenizer.think_end is not None:
        return tokenizer.think_start, tokenizer.think_end
    return next((pair for pair in _MORE_REASONING_MARKERS if vocabulary >= set(pair)), None)


def find_states(
    tokenizer: Tokenizer,
    vocabulary: Set[str],
    reasoning_markers: ReasoningMarkers | None,
    tools: ToolFormat | None,
) -> dict[str, State]:
    """Return a model's states by name.

    Args:
        tokenizer: The model's tokenizer.
        vocabulary: The texts of all tokens.
        reasoning_markers: The markers around reasoning.
        tools: The format of tool calls.
    """
    edges: Transitions = {CONTENT: {}, CALL: {}, REASONING_CALL: {}, BARE_CALL: {}}
    if tools is not None and tools.end:
        edges[CALL] = {tools.end: CONTENT}
        edges[REASONING_CALL] = {tools.end: INTERRUPTED}
    if tokenizer.response_transitions:
        edges |= _message_transitions(tokenizer)
    else:
        structure = [
            *tokenizer.structural_markers,
            *(marker for marker in _MORE_CONTENT_MARKERS if marker in vocabulary),
        ]
        edges |= _tag_transitions(reasoning_markers, tools, structure)
    return {name: _state(name, targets) for name, targets in edges.items()}


def _message_transitions(tokenizer: Tokenizer) -> Transitions:
    return {
        _STATE_NAMES.get(name, name): {marker: _STATE_NAMES.get(target, target) for marker, target in edges}
        for name, edges in tokenizer.response_transitions.items()
    }


def _tag_transitions(
    reasoning_markers: ReasoningMarkers | None, tools: ToolFormat | None, structure: Sequence[str]
) -> Transitions:
    content = dict.fromkeys(structure, CONTENT)
    call = tools.start if tools is not None else ""
    if call:
        content[call] = CALL
    if reasoning_markers is None:
        return {CONTENT: content}
    start, end = reasoning_markers
    content[end] = CONTENT  # a stray one
    content[start] = REASONING
    reasoning = {end: CONTENT} | ({call: REASONING_CALL} if call else {})
    return {CONTENT: content, REASONING: reasoning, INTERRUPTED: content}


def _state(name: str, edges: dict[str, str]) -> State:
    channel = "reasoning" if name in (REASONING, REASONING_CALL) else "content"
    if name in (CALL, REASONING_CALL, BARE_CALL):
        return State(edges, channel, "call")
    return State(edges, channel, "text" if name in (CONTENT, REASONING, INTERRUPTED) else "header")
