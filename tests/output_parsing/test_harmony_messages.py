"""Answers that consist of messages: gpt-oss's, on their channels and to tools, and Muse Spark's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lmwire_worker.output_parsing import CONTENT, REASONING, start_state
from support.runners.answer_parts import CALLS, HARMONY, LetterCalls, Letters, cut, parts_of, syntax_of


class HarmonyCalls(LetterCalls):
    """Parser that reads `functions.a <|constrain|>json<|message|>12` as `a(12)`."""

    def push(self, text: str) -> list:
        self._open += text
        return []

    def end(self, closed: bool = True, *, marked: bool = True) -> tuple[list, str]:
        header, message, body = self._open.partition("<|message|>")
        name = header.removeprefix("functions.").split("<")[0].strip()
        if not (message and body.isdigit() and name):
            return [], self._open
        self._open = ""
        fragments = super().push(f"{name}({body})")
        return fragments, ""


HARMONY_CALLS = replace(
    CALLS, name="harmony", start="<|channel|>commentary to=", end="<|call|>", shape=Letters(HarmonyCalls)
)
SYNTAX = syntax_of(*HARMONY, model_type="gpt_oss", tools=HARMONY_CALLS)
OPENED = "<|start|>assistant"
STATE = start_state(SYNTAX, OPENED)


def test_channels_are_distinguished() -> None:
    text = (
        "<|channel|>analysis<|message|>a thought<|end|><|start|>assistant<|channel|>commentary<|message|>Wait.<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>more<|end|><|start|>assistant<|channel|>final<|message|>Done."
    )
    expected = [("reasoning", "a thought"), ("content", "Wait."), ("reasoning", "more"), ("content", "Done.")]
    assert parts_of([text], SYNTAX, STATE) == expected
    assert parts_of(text, SYNTAX, STATE) == expected


@pytest.mark.parametrize(
    "call",
    [
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>12",
        "<|channel|>analysis to=functions.f<|message|>12",
        " to=functions.f<|channel|>commentary <|constrain|>json<|message|>12",
        "to=functions.f<|channel|>commentary<|message|>12",
    ],
)
@pytest.mark.parametrize("end", ["", "<|call|>", "<|end|>"])
def test_a_message_to_a_tool_is_a_call(call: str, end: str) -> None:
    for fragments in ([call + end], call + end):
        assert parts_of(fragments, SYNTAX, STATE) == [("call", "0", "f", "12", "whole")]
    reasoning = "<|channel|>analysis<|message|>a<|end|><|start|>assistant"
    assert parts_of([reasoning, call, end, "<|start|>assistant", call, end], SYNTAX, STATE) == [
        ("reasoning", "a"),
        ("call", "0", "f", "12", "whole"),
        ("call", "1", "f", "12", "whole"),
    ]


def test_a_call_that_cannot_be_read_is_text_with_its_header() -> None:
    call = "<|channel|>commentary to=functions.f<|message|>1,2<|call|>"
    assert parts_of([call], SYNTAX, STATE) == [("content", call)]
    assert parts_of(["<|channel|>final<|message|>a<|end|><|start|>assistant", call], SYNTAX, STATE) == [
        ("content", f"a<|start|>assistant{call}")
    ]


@pytest.mark.parametrize("reads_calls", [True, False])
@pytest.mark.parametrize(
    ("message", "channel"),
    [
        ("<|channel|>commentary to=python <|constrain|>code<|message|>1 + 1", "reasoning"),
        ("<|channel|>analysis to=browser.search code<|message|>1 + 1", "reasoning"),
        (" to=container.exec<|channel|>commentary<|message|>1 + 1", "reasoning"),
        ("<|channel|>commentary to=assistant<|channel|>analysis<|message|>1 + 1", "reasoning"),
        ("<|channel|>commentary to=assistant<|channel|>final<|message|>1 + 1", "content"),
    ],
)
def test_the_header_of_a_message_to_another_recipient_is_no_text(message: str, channel: str, reads_calls: bool) -> None:
    answer = f"{message}<|end|><|start|>assistant<|channel|>final<|message|>b"
    expected = [(channel, "1 + 1"), ("content", "b")] if channel == "reasoning" else [("content", "1 + 1b")]
    for pieces in ([answer], answer):
        assert parts_of(pieces, SYNTAX, STATE, reads_calls=reads_calls) == expected
    assert parts_of([message], SYNTAX, STATE, finished=False, reads_calls=reads_calls) == [(channel, "1 + 1")]


def test_without_tools_a_call_is_text_with_its_header() -> None:
    call = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>12"
    assert parts_of([call], SYNTAX, STATE, reads_calls=False) == [("content", call)]


def test_the_format_of_an_answer_in_its_header_is_no_text() -> None:
    text = "<|channel|>final <|constrain|>json<|message|>{}<|return|>"
    assert parts_of([text], SYNTAX, STATE) == [("content", "{}")]


def test_a_header_that_is_cut_off_is_text() -> None:
    assert parts_of(["<|channel|>anal"], SYNTAX, STATE, finished=False) == [("content", "<|channel|>anal")]
    assert parts_of(["<|channel|>final<|message|>a<|end|>"], SYNTAX, STATE, finished=False) == [("content", "a")]


def test_a_message_may_begin_before_the_one_before_has_ended() -> None:
    text = "<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>b"
    assert parts_of([text], SYNTAX, STATE) == [("reasoning", "a"), ("content", "b")]
    assert parts_of([text.replace("<|start|>assistant", "")], SYNTAX, STATE) == [("reasoning", "a"), ("content", "b")]


def test_a_prefix_can_open_a_message() -> None:
    assert start_state(SYNTAX, f"{OPENED}<|channel|>final<|message|>Sure") == CONTENT
    assert start_state(SYNTAX, f"{OPENED}<|channel|>analysis<|message|>") == REASONING


# Muse Spark.

MUSE_CALLS = replace(CALLS, name="muse_spark", start="<atem:function_calls>", end="</atem:function_calls>")
MUSE = syntax_of(tools=MUSE_CALLS)
MUSE_ANSWER = (
    "to=self<|message|>a<|eom|><|start|>assistant to=NAME<|message|><atem:function_calls>f(1)</atem:function_calls>"
    "<|eom|><|start|>assistant to=user<|message|>b<|eot|>"
)


def test_messages_of_muse_spark_are_distinguished() -> None:
    assert (MUSE.think_start, MUSE.think_end) == ("to=self<|message|>", "<|eom|>")
    assert start_state(MUSE, "<|start|>assistant ") == "header"
    assert start_state(MUSE, "<|start|>assistant to=user<|message|>Sure") == CONTENT
    assert parts_of([MUSE_ANSWER], MUSE) == [("reasoning", "a"), ("call", "0", "f", "1", "whole"), ("content", "b")]
    plain = "<|start|>assistant to=NAME<|message|><atem:function_calls>f(1)</atem:function_calls>b"
    assert parts_of([MUSE_ANSWER], MUSE, reads_calls=False) == [("reasoning", "a"), ("content", plain)]


def test_a_header_that_nothing_follows_is_text() -> None:
    assert parts_of(["to=self<|message|>a<|eom|><|start|>assis"], MUSE) == [
        ("reasoning", "a"),
        ("content", "<|start|>assis"),
    ]
    assert parts_of(["to=self<|message|>a<|eom|>"], MUSE) == [("reasoning", "a")]


# Any text.

WORDS = [*HARMONY, "assistant", "analysis", "commentary", "final", " to=", "functions.f", "12", "a", "<|", " "]
MUSE_WORDS = ["to=self", "to=user", "to=f", "<|message|>", "<|eom|>", "<|eot|>", "<|start|>", "assistant ", "f(1)", "a",
              "<atem:function_calls>", "</atem:function_calls>", "<", " "]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=30), st.lists(st.integers(0, 300)), st.booleans())
def test_harmony_answers_are_parsed_alike_however_the_text_is_cut(
    words: list[str], places: list[int], finished: bool
) -> None:
    text = "".join(words)
    whole = parts_of([text], SYNTAX, STATE, finished=finished)
    assert parts_of(cut(text, places), SYNTAX, STATE, finished=finished) == whole
    assert parts_of(text, SYNTAX, STATE, finished=finished) == whole


@given(st.lists(st.sampled_from(MUSE_WORDS), max_size=30), st.lists(st.integers(0, 300)))
def test_messages_of_muse_spark_are_parsed_alike_however_the_text_is_cut(words: list[str], places: list[int]) -> None:
    text = "".join(words)
    assert parts_of(cut(text, places), MUSE) == parts_of([text], MUSE) == parts_of(text, MUSE)
