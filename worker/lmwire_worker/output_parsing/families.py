"""The states of models that write markers around reasoning, content and tool calls."""

from collections.abc import Sequence, Set
from itertools import chain
from typing import Final

from ..tool_parsers import ToolFormat
from .states import (
    BARE_CALL,
    CALL,
    CONTENT,
    INTERRUPTED,
    LOST_CALL,
    QUOTED_CALL,
    REASONING,
    REASONING_CALL,
    REASONING_LOST_CALL,
    UNCLOSED,
    State,
)

_XTML: Final = frozenset({"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"})
"""Tokens of Kimi K3."""

_MARKERS_BY_TOKENS: Final = (
    (frozenset({"<think>", "</think>"}), ("<think>", "</think>")),
    (frozenset({"<longcat_think>", "</longcat_think>"}), ("<longcat_think>", "</longcat_think>")),
    (frozenset({"<|think:start|>", "<|think:end|>"}), ("<|think:start|>", "<|think:end|>")),
    (frozenset({"<|channel>", "<channel|>"}), ("<|channel>thought", "<channel|>")),  # Gemma 4
    (_XTML, ("<|open|>think<|sep|>", "<|close|>think<|sep|>")),
    (frozenset({"[THINK]", "[/THINK]"}), ("[THINK]", "[/THINK]")),  # Magistral
    (frozenset({"<seed:think>", "</seed:think>"}), ("<seed:think>", "</seed:think>")),  # Seed-OSS
    (frozenset({"<mm:think>", "</mm:think>"}), ("<mm:think>", "</mm:think>")),  # MiniMax M3
    (frozenset({"<think:opensource>", "</think:opensource>"}), ("<think:opensource>", "</think:opensource>")),  # Hy3
    (frozenset({"<|START_THINKING|>", "<|END_THINKING|>"}), ("<|START_THINKING|>", "<|END_THINKING|>")),  # Command A
    (frozenset({"<|inner_prefix|>", "<|inner_suffix|>"}), ("<|inner_prefix|>", "<|inner_suffix|>")),  # Apertus
)
"""Tokens in the vocabulary of a model, and the markers around its reasoning."""

_MARKERS_IN_TEMPLATES: Final = (
    ("<think>", "</think>"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("[THINK]", "[/THINK]"),
    ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),  # Apriel
    ("Here is my thought process:", "Here is my response:"),  # Granite 3.2
)
"""Markers around reasoning that are text for the tokenizer. The chat template names tags, or the end of prose."""

ContentMarkers = tuple[str, str]
"""The start marker and the end marker of content."""
_CONTENT_MARKERS: Final[Sequence[ContentMarkers]] = (
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),  # Command R7B and A
    ("<|START_TEXT|>", "<|END_TEXT|>"),
    ("[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]"),  # Apriel
    ("<answer>", "</answer>"),  # Hunyuan
    ("<response>", "</response>"),  # Granite 3.3
)
"""Markers around content, both of which the vocabulary or the chat template has."""

_XTML_CONTENT: Final[Sequence[ContentMarkers]] = (
    ("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
    ("<|open|>response<|sep|>", "<|close|>message<|sep|>"),
)

ReasoningMarkers = tuple[str, str]
"""The start marker and the end marker of reasoning."""


def find_reasoning_markers(vocabulary: Set[str], template: str) -> ReasoningMarkers | None:
    """Return the markers around a model's reasoning, or None for a model without reasoning.

    Args:
        vocabulary: The texts of all tokens.
        template: The source of the chat template.
    """
    for tokens, markers in _MARKERS_BY_TOKENS:
        if vocabulary >= tokens:
            return markers
    for start, end in _MARKERS_IN_TEMPLATES:
        if end in template and (start in template or start[0] not in "<["):
            return start, end
    return None


def find_content_markers(vocabulary: Set[str], template: str) -> Sequence[ContentMarkers]:
    """Return the markers around a model's content.

    Args:
        vocabulary: The texts of all tokens.
        template: The source of the chat template.
    """
    found = [pair for pair in _CONTENT_MARKERS if all(mark in vocabulary or mark in template for mark in pair)]
    return [*found, *_XTML_CONTENT] if vocabulary >= _XTML else found


def find_states(
    reasoning_markers: ReasoningMarkers | None, content_markers: Sequence[ContentMarkers], tools: ToolFormat | None
) -> dict[str, State]:
    """Return a model's states by name.

    Args:
        reasoning_markers: The markers around reasoning.
        content_markers: The markers around content.
        tools: The format of tool calls.
    """
    starts = dict.fromkeys(chain.from_iterable(content_markers), CONTENT)
    lost = tools.lost_starts if tools is not None else ()
    if tools is not None and tools.start:
        starts[tools.start] = CALL
    starts |= dict.fromkeys(lost, LOST_CALL)
    ends = {tools.end: CONTENT} if tools is not None and tools.end else {}
    states = {name: State(ends, kind="call", has_markup=name == LOST_CALL) for name in (CALL, LOST_CALL)}
    states[BARE_CALL] = State(ends if tools is not None and tools.bare else {}, kind="call")
    if reasoning_markers is None:
        return states | {CONTENT: State(starts)}
    start, end = reasoning_markers
    content = {end: CONTENT} | starts | {start: REASONING}  # a stray end marker is not text
    if start.startswith("<|channel>"):  # Gemma 4 may write it twice
        content[f"<|channel>{start}"] = REASONING
    calls = ({tools.start: REASONING_CALL} if tools.start else {}) if tools is not None else {}
    calls |= dict.fromkeys(lost, REASONING_LOST_CALL)
    quotes = tools is not None and not tools.ends_reasoning
    closed = dict.fromkeys(ends, INTERRUPTED)
    return states | {
        CONTENT: State(content),
        INTERRUPTED: State(content),
        REASONING: State({end: CONTENT} | (dict.fromkeys(calls, QUOTED_CALL) if quotes else calls), "reasoning"),
        UNCLOSED: State({end: CONTENT} | calls, "reasoning"),
        QUOTED_CALL: State({end: CONTENT}, "reasoning", "quoted"),
        REASONING_CALL: State(closed, "reasoning", "call"),
        REASONING_LOST_CALL: State(closed, "reasoning", "call", has_markup=True),
    }
