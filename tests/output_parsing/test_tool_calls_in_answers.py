"""Sections of calls in an answer: found, read, numbered, and taken back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmwire_worker.output_parsing import CONTENT, REASONING, OutputParser, Syntax, TextFragment
from lmwire_worker.tool_parsers import ToolCallFragment, ToolFormat
from support.runners.answer_parts import BARE, CALLS, QUOTED, TAGS, TO_THE_END, Letters, cut, parts_of, syntax_of

SYNTAX = syntax_of(*TAGS, tools=CALLS)
OPEN_ENDED = syntax_of(*TAGS, tools=TO_THE_END)
BARELY = syntax_of(*TAGS, tools=BARE)
F = ("call", "0", "f", "1", "whole")
G = ("call", "1", "g", "23", "whole")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<call>f(1)</call>", [F]),
        ("Sure. <call>f(1)</call>\n", [("content", "Sure. "), F]),
        ("<call>f(1)g(23)</call>", [F, G]),
        ("<call>f(1)</call>\n<call>g(23)</call>", [F, G]),
        ("<call>f(1)</call>\n\nDone.", [F, ("content", "\n\nDone.")]),
        ("<call>f(1)</call>\n<call>g", [F, ("content", "\n<call>g")]),
        ("<think>a</think>\n<call>f(1)</call>", [("reasoning", "a"), ("content", "\n"), F]),
        ("<call>f(1)", [F]),
        ("<call>f(1)</ca", [F]),
    ],
)
def test_calls_are_distinguished_wherever_the_text_is_cut(text: str, expected: list[tuple[str, ...]]) -> None:
    assert parts_of([text], SYNTAX) == expected
    assert parts_of(text, SYNTAX) == expected
    for place in range(len(text)):
        assert parts_of([text[:place], text[place:]], SYNTAX) == expected


@pytest.mark.parametrize("text", ["<call></call>", "<call>f</call>", "<call>f 1</call>", "<call> </call>", "<call>"])
def test_a_section_without_a_call_is_text_markers_included(text: str) -> None:
    assert parts_of([f"a{text}b"] if text.endswith("</call>") else [f"a{text}"], SYNTAX) == [
        ("content", f"a{text}b" if text.endswith("</call>") else f"a{text}")
    ]


def test_a_call_that_is_cut_off_is_taken_back_and_its_text_follows() -> None:
    taken_back = ("call", "0", "f", "1", "taken back")
    assert parts_of(["<call>f(1"], SYNTAX, finished=False) == [taken_back, ("content", "<call>f(1")]
    assert parts_of(["<call>f(1"], SYNTAX) == [taken_back, ("content", "<call>f(1")]
    assert parts_of(["<call>f(1</call>"], SYNTAX) == [taken_back, ("content", "<call>f(1</call>")]


def test_what_is_no_call_in_a_section_is_text_and_its_whole_calls_stand() -> None:
    assert parts_of(["<call>f(1)g(2</call><call>g(23)</call>"], SYNTAX) == [
        F,
        ("call", "1", "g", "2", "taken back"),
        ("content", "<call>g(2</call>"),
        ("call", "2", "g", "23", "whole"),
    ]


def test_calls_are_counted_when_they_are_whole() -> None:
    answer = OutputParser(SYNTAX, CONTENT, (), parses_calls=True)
    counts = []
    for text in ("<call>f", "(1", ")", "g(", "</call>", "<call>g(2)"):
        answer.push(text)
        counts.append(answer.calls)
    assert counts == [0, 0, 1, 1, 1, 2]


def test_fragments_of_a_call_are_returned_as_they_arrive() -> None:
    answer = OutputParser(SYNTAX, CONTENT, (), parses_calls=True)
    assert answer.push("a<call>f") == [TextFragment("content", "a")]
    assert answer.channel == "content"
    assert answer.push("(1") == [ToolCallFragment(0, name="f"), ToolCallFragment(0, arguments="1")]
    assert answer.push(")") == [ToolCallFragment(0, complete=True)]


def test_a_section_without_an_end_marker_lasts_to_the_end() -> None:
    assert parts_of(["a[CALL]f(1)g(23)"], OPEN_ENDED) == [("content", "a"), F, G]
    assert parts_of(["[CALL]f(1)<think>"], OPEN_ENDED) == [F, ("content", "<think>")]


@pytest.mark.parametrize("finished", [True, False])
def test_the_parser_receives_whether_its_section_was_closed(finished: bool) -> None:
    ends = []

    class Reader:
        is_abandoned = False

        def push(self, text: str) -> list[ToolCallFragment]:
            return []

        def end(self, closed: bool = True, *, marked: bool = True) -> tuple[list[ToolCallFragment], str]:
            ends.append(closed)
            return [], ""

    syntax = syntax_of(tools=ToolFormat("told", "<call>", "</call>", Letters(lambda tools: Reader())))
    parts_of(["<call></call><call>"], syntax, finished=finished)
    assert ends == [True, finished]


# In thoughts.


def test_a_whole_call_in_reasoning_ends_the_reasoning() -> None:
    reasoning = ("reasoning", "a")
    assert parts_of(["<think>a<call>f(1)</call>b"], SYNTAX) == [reasoning, F, ("content", "b")]
    assert parts_of(["<think>a<call>f(1)"], SYNTAX) == [reasoning, F]
    assert parts_of(["<think>a<call>f(1)</call>\n</think>\nb"], SYNTAX) == [reasoning, F, ("content", "\n\nb")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a<call>f(1)</call>b</think>c", [("reasoning", "a<call>f(1)</call>b"), ("content", "c")]),
        ("<think>a<call>f(1)</call></think><call>f(1)</call>", [("reasoning", "a<call>f(1)</call>"), F]),
        ("<think>a<call>f(1)</call>b", [("reasoning", "a"), F, ("content", "b")]),
        ("<think>a<call>f(1)</call><call>g(23)</call>", [("reasoning", "a"), F, G]),
        ("<think>a<call>f</call>b<call>f(1)</call>", [("reasoning", "a<call>f</call>b"), F]),
        ("<think>a<call>f(1)", [("reasoning", "a"), F]),
        ("<think>a<call>f", [("reasoning", "a<call>f")]),
    ],
)
def test_in_most_families_a_call_in_reasoning_that_closes_is_quoted(text: str, expected: list[tuple[str, ...]]) -> None:
    syntax = syntax_of(*TAGS, tools=QUOTED)
    assert parts_of([text], syntax) == expected
    assert parts_of(text, syntax) == expected
    for place in range(len(text)):
        assert parts_of([text[:place], text[place:]], syntax) == expected


def test_an_invalid_call_in_reasoning_stays_reasoning() -> None:
    assert parts_of(["<think>a <call> tag</call> b</think>c"], SYNTAX) == [
        ("reasoning", "a <call> tag</call> b"),
        ("content", "c"),
    ]
    assert parts_of(["a <call> tag</call"], SYNTAX, REASONING) == [("reasoning", "a <call> tag</call")]


def test_markers_in_a_call_are_part_of_it() -> None:
    text = "<call>f<think>a</think><call>b</call>"
    assert parts_of([text], SYNTAX) == [("content", text)]


# Without tools.


def test_calls_that_are_not_read_are_text() -> None:
    text = "a<call>f(1)</call><think>b<call>f</think>c"
    expected = [("content", "a<call>f(1)</call>"), ("reasoning", "b<call>f"), ("content", "c")]
    assert parts_of([text], SYNTAX, reads_calls=False) == expected
    assert parts_of(text, SYNTAX, reads_calls=False) == expected
    assert parts_of(["f(1)"], BARELY, reads_calls=False) == [("content", "f(1)")]


def test_a_model_that_knows_no_tools_makes_no_calls() -> None:
    assert parts_of(["<call>f(1)</call>"], syntax_of()) == [("content", "<call>f(1)</call>")]


# Without markers.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(1)", [F]),
        ("f(1)g(23)", [F, G]),
        ("<|call|>f(1)", [F]),
        ("Hm, f(1)", [("content", "Hm, f(1)")]),
        ("<think>a</think>f(1)", [("reasoning", "a"), F]),
        ("<think>a</think>Hm, <think>b</think>f(1)", [("reasoning", "a"), ("content", "Hm, "), ("reasoning", "b"),
                                                       ("content", "f(1)")]),
        ("f(1)!", [F, ("content", "!")]),
        ("f(1", [("call", "0", "f", "1", "taken back"), ("content", "f(1")]),
        ("f(1!)", [("call", "0", "f", "1", "taken back"), ("content", "f(1!)")]),
        ("f(<think>a</think>", [("call", "0", "f", "", "taken back"), ("content", "f("), ("reasoning", "a")]),
        (" ", [("content", " ")]),
    ],
)  # fmt: skip
def test_a_bare_call_opens_the_content(text: str, expected: list[tuple[str, ...]]) -> None:
    assert parts_of([text], BARELY) == expected
    assert parts_of(text, BARELY) == expected


def test_what_is_no_bare_call_is_shown_at_once() -> None:
    answer = OutputParser(BARELY, CONTENT, (), parses_calls=True)
    assert answer.push("Hm") == []
    assert answer.push(", a") == [TextFragment("content", "Hm, a")]
    assert answer.push(" f(1)") == [TextFragment("content", " f(1)")]


# Any text.

WORDS = ["<think>", "</think>", "<call>", "</call>", "f(1)", "g(", "2", ")", " ", "a", "é🎉", "<", "/", "call", ">"]
some_text = st.lists(st.sampled_from([*WORDS, "[CALL]", "<|call|>"]), max_size=20)


@given(st.sampled_from([SYNTAX, OPEN_ENDED, BARELY]), some_text, st.lists(st.integers(0, 100)), st.booleans())
def test_it_does_not_matter_how_the_text_is_cut(
    syntax: Syntax, words: list[str], places: list[int], finished: bool
) -> None:
    text = "".join(words)
    whole = parts_of([text], syntax, finished=finished)
    assert parts_of(cut(text, places), syntax, finished=finished) == whole
    assert parts_of(text, syntax, finished=finished) == whole


@given(st.sampled_from([SYNTAX, OPEN_ENDED, BARELY]), st.lists(st.sampled_from(WORDS[:11]), max_size=20))
def test_all_text_is_in_a_whole_call_or_shown(syntax: Syntax, words: list[str]) -> None:
    text = "".join(words)
    parts = parts_of(text, syntax)
    shown = "".join(
        f"{part[2]}({part[3]})" if part[0] == "call" else part[1] for part in parts if part[-1] != "taken back"
    )
    marker = re.compile("</?(?:think|call)>")
    assert marker.sub("", shown) == marker.sub("", text)
    assert len(marker.findall(shown)) <= len(marker.findall(text))
