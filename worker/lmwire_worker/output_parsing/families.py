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
    OPENED,
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
    (frozenset({"<ifm|think>", "</ifm|think>"}), ("<ifm|think>", "</ifm|think>")),  # K2 Horizon
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
_SHOWN_TOGETHER: Final = frozenset({"<response>"})
"""Start markers that count only with the end marker right after them, as an instruction shows them. MiniMax M2 writes
the same tags around results."""

_XTML_CONTENT: Final[Sequence[ContentMarkers]] = (
    ("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
    ("<|open|>response<|sep|>", "<|close|>message<|sep|>"),
)

_TOKEN: Final = "<|"
"""Beginning of the markers of content that are tokens."""

_USUAL_END: Final = "</think>"
"""End of reasoning in most families. A call without a marker may follow it in the text of a model without reasoning."""

_BY_EFFORT: Final = {"<ifm|think>": ("_fast", "_faster")}
"""Endings of the tags around reasoning that a model writes at lower efforts."""

_GEMMA_CHANNEL: Final = "<|channel>"
"""Start of Gemma 4's reasoning. The model may write it twice, or without the channel's name."""

_NEVER_TEXT: Final = frozenset({"<channel|>"})
"""End markers of reasoning that are not text after content either. Gemma 4 writes its token at the end of an answer."""

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
    found = [
        pair
        for pair in _CONTENT_MARKERS
        if all(mark in vocabulary or mark in template for mark in pair)
        and (pair[0] not in _SHOWN_TOGETHER or "".join(pair) in template)
    ]
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
    starts: dict[str, str] = dict.fromkeys(chain.from_iterable(content_markers), CONTENT)
    lost = tools.lost_starts if tools is not None else ()
    if tools is not None and tools.start:
        starts[tools.start] = CALL
    starts |= dict.fromkeys(lost, LOST_CALL)
    starts |= dict.fromkeys(tools.stray if tools is not None else (), CONTENT)
    ends = {tools.end: CONTENT} if tools is not None and tools.end else {}
    states = {name: State(ends, kind="call", has_markup=name == LOST_CALL) for name in (CALL, LOST_CALL)}
    states[BARE_CALL] = State(ends if tools is not None and tools.bare else {}, kind="call")
    if reasoning_markers is None:
        late = (_USUAL_END,) if tools is not None and tools.bare else ()
        return states | {CONTENT: State(dict.fromkeys(late, CONTENT) | starts, late_ends=late)}
    start, end = reasoning_markers
    content = {end: CONTENT} | starts | {start: REASONING}
    if start.startswith(_GEMMA_CHANNEL):
        del content[start]
        content[_GEMMA_CHANNEL] = OPENED
        name = start.removeprefix(_GEMMA_CHANNEL)
        opened = {_GEMMA_CHANNEL: OPENED, end: CONTENT} | ({name: REASONING} if name else {})
        states[OPENED] = State(opened, "reasoning", otherwise=REASONING)
    tags = [(f"{start[:-1]}{ending}>", f"{end[:-1]}{ending}>") for ending in _BY_EFFORT.get(start, ())]
    content |= {tag: target for pair in tags for tag, target in zip(pair, (REASONING, CONTENT), strict=True)}
    closes = {end: CONTENT} | {closing: CONTENT for _, closing in tags}
    late_ends = () if end in _NEVER_TEXT else tuple(closes)
    # Some models forget to end their reasoning before the content. Reasoning may quote a tag of text, but no token.
    closes |= dict.fromkeys((start for start, _ in content_markers if start.startswith(_TOKEN)), CONTENT)
    calls = ({tools.start: REASONING_CALL} if tools.start else {}) if tools is not None else {}
    calls |= dict.fromkeys(lost, REASONING_LOST_CALL)
    quotes = tools is not None and not tools.ends_reasoning
    closed = dict.fromkeys(ends, INTERRUPTED)
    return states | {
        CONTENT: State(content, late_ends=late_ends),
        INTERRUPTED: State(content),
        REASONING: State(closes | (dict.fromkeys(calls, QUOTED_CALL) if quotes else calls), "reasoning"),
        UNCLOSED: State(closes | calls, "reasoning"),
        QUOTED_CALL: State(closes, "reasoning", "quoted"),
        REASONING_CALL: State(closed, "reasoning", "call"),
        REASONING_LOST_CALL: State(closed, "reasoning", "call", has_markup=True),
    }
