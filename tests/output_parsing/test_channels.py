"""Thoughts and content in a stream of text, compared with the plainest way to separate them: in the whole text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmwire_worker.output_parsing import CONTENT, REASONING, OutputParser, TextFragment
from support.runners.answer_parts import GEMMA4, TAGS, XTML, cut, parts_of, syntax_of

SYNTAX = syntax_of(*TAGS)
SYNTAXES = {name: syntax_of(*markers) for name, markers in {"tags": TAGS, "gemma 4": GEMMA4, "xtml": XTML}.items()}
WORDS = {
    "tags": ["<think>", "</think>", "<", "/", "think", ">", "é🎉", " ", "\n"],
    "gemma 4": ["<|channel>thought", "<channel|>", "<|channel>", "thought", "<", "|", "a"],
    "xtml": ["<|open|>", "<|close|>", "<|sep|>", "think", "response", "message", "<|", "a"],
}
START = {
    "tags": "<think>",
    "gemma 4": r"(?:<\|channel>)+(?:thought)?",  # the model may write the token twice, or without the channel's name
    "xtml": r"<\|open\|>think<\|sep\|>",
}
END = {"tags": "</think>", "gemma 4": "<channel|>", "xtml": "<|close|>think<|sep|>"}
STRUCTURE = ["<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"]
some_text = st.sampled_from(sorted(WORDS)).flatmap(
    lambda family: st.tuples(st.just(family), st.lists(st.sampled_from(WORDS[family]), max_size=24).map("".join))
)


def plainly(family: str, text: str) -> list[tuple[str, str]]:
    """Every text with its channel, and every marker as `("", marker)`, in their order."""
    channel, found, has_content = "content", [], False
    while text:
        structure = STRUCTURE if family == "xtml" and channel == "content" else []
        start = [START[family]] if channel == "content" else []
        match = re.search("|".join([*map(re.escape, [END[family], *structure]), *start]), text)
        if match is None:
            return [*found, (channel, text)]
        before = text[: match.start()]
        has_content |= channel == "content" and bool(before.strip())
        is_late = match[0] == END[family] != "<channel|>" and channel == "content" and has_content
        found += [(channel, before), (channel if is_late else "", match[0])]
        if match[0] not in structure:
            channel = "content" if match[0] == END[family] else "reasoning"
        text = text[match.end() :]
    return found


@given(some_text, st.lists(st.integers(0, 200)))
def test_however_it_is_cut_every_text_is_shown_on_its_channel_and_only_markers_are_not(
    case: tuple[str, str], places: list[int]
) -> None:
    family, text = case
    found = plainly(family, text)
    assert "".join(part for _, part in found) == text
    shown: list[tuple[str, str]] = []
    for channel, part in found:
        if channel and part and shown and shown[-1][0] == channel:
            shown[-1] = (channel, shown[-1][1] + part)
        elif channel and part:
            shown.append((channel, part))
    assert parts_of(cut(text, places), SYNTAXES[family]) == shown


# Hypothesis draws words from this project's modules too, and markers are among them.
@given(st.text().filter(lambda text: not any(marker in text for marker in TAGS)), st.lists(st.integers(0, 200)))
def test_text_without_markers_is_shown_as_it_is(text: str, places: list[int]) -> None:
    assert parts_of(cut(text, places), SYNTAX) == ([("content", text)] if text else [])


def test_text_is_shown_as_soon_as_it_can_be_no_marker() -> None:
    answer = OutputParser(SYNTAX, CONTENT, (), parses_calls=False)
    assert answer.push("a <thi") == [TextFragment("content", "a ")]
    assert answer.push("s") == [TextFragment("content", "<this")]
    assert answer.push("<think") == []
    assert answer.push(">b</") == [TextFragment("reasoning", "b")]


def test_the_channel_changes_with_the_marker() -> None:
    answer = OutputParser(SYNTAX, CONTENT, (), parses_calls=False)
    channels = []
    for fragment in ("a", "<think", ">", "b", "</think>", "c"):
        answer.push(fragment)
        channels.append(answer.channel)
    assert channels == ["content", "content", "reasoning", "reasoning", "content", "content"]


@given(st.lists(st.integers(0, 40)))
def test_white_space_before_content_with_a_format_is_dropped(places: list[int]) -> None:
    answer = OutputParser(SYNTAX, REASONING, (), parses_calls=False, drops_space=True)
    parts = [
        part for piece in cut("\na \n</think>\n \n{ 1 }\n<think> b</think> c", places) for part in answer.push(piece)
    ]
    texts = [(part.channel, part.text) for part in parts + answer.end(finished=True) if isinstance(part, TextFragment)]
    joined = {channel: "".join(text for of, text in texts if of == channel) for channel in ("reasoning", "content")}
    assert joined == {"reasoning": "\na \n b", "content": "{ 1 }\n c"}


def test_half_a_marker_at_the_end_is_text() -> None:
    for finished in (True, False):
        assert parts_of(["a<thin"], SYNTAX, finished=finished) == [("content", "a<thin")]
        assert parts_of(["a</think"], SYNTAX, REASONING, finished=finished) == [("reasoning", "a</think")]


def test_a_whole_marker_at_the_end_is_none() -> None:
    assert parts_of(["a<think>"], SYNTAX) == [("content", "a")]
    assert parts_of(["a</think>"], SYNTAX, REASONING) == [("reasoning", "a")]


def test_an_answer_may_contain_reasoning_several_times() -> None:
    text = "<think>a</think>b<think>c</think>d"
    assert parts_of([text], SYNTAX) == [("reasoning", "a"), ("content", "b"), ("reasoning", "c"), ("content", "d")]


@pytest.mark.parametrize("fragments", [["a</think>b"], ["a<", "/thi", "nk>", "b"], [*"a</think>b"]])
def test_an_end_marker_after_content_is_text(fragments: list[str]) -> None:
    assert parts_of(fragments, SYNTAX) == [("content", "a</think>b")]


@pytest.mark.parametrize("state", [CONTENT, REASONING])
def test_an_end_marker_before_all_content_is_not_text(state: str) -> None:
    text = "</think>\n</think>a</think>b"
    assert parts_of([text], SYNTAX, state) == parts_of([*text], SYNTAX, state) == [("content", "\na</think>b")]


@pytest.mark.parametrize("start", ["<|channel>", "<|channel>thought", "<|channel><|channel>thought"])
def test_gemma_4_may_leave_out_the_channels_name(start: str) -> None:
    syntax = SYNTAXES["gemma 4"]
    text = f"{start}\na thought<channel|>{start}\nb<channel|>c<channel|>"
    found = [("reasoning", "\na thought\nb"), ("content", "c")]
    assert parts_of([text], syntax) == parts_of([*text], syntax) == found


def test_a_start_marker_in_reasoning_is_text() -> None:
    assert parts_of(["a<think>b</think>c"], SYNTAX, REASONING) == [("reasoning", "a<think>b"), ("content", "c")]
