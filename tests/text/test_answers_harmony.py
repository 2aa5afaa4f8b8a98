"""gpt-oss's messages, on their channels and to tools."""

from dataclasses import replace

import pytest

from lmwire_worker.text.answers import CONTENT, REASONING
from marked_up import CALLS, HARMONY, LetterCalls, parts_of, syntax_of


class HarmonyCalls(LetterCalls):
    """Reads `functions.a <|constrain|>json<|message|>12` as `a(12)`."""

    def push(self, text: str) -> list:
        self._open += text
        return []

    def end(self, closed: bool = True) -> tuple[list, str]:
        header, message, body = self._open.partition("<|message|>")
        name = header.removeprefix("functions.").split("<")[0].strip()
        if not (message and body.isdigit() and name):
            return [], self._open
        self._open = ""
        pieces = super().push(f"{name}({body})")
        return pieces, ""


HARMONY_CALLS = replace(CALLS, name="harmony", start="<|channel|>commentary to=", end="<|call|>", reader=HarmonyCalls)
SYNTAX = syntax_of(*HARMONY, model_type="gpt_oss", tools=HARMONY_CALLS)
OPENED = "<|start|>assistant"
STATE = SYNTAX.start_state(OPENED)


def test_channels_are_told_apart() -> None:
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
    for pieces in ([call + end], call + end):
        assert parts_of(pieces, SYNTAX, STATE) == [("call", "0", "f", "12", "whole")]
    thought = "<|channel|>analysis<|message|>a<|end|><|start|>assistant"
    assert parts_of([thought, call, end, "<|start|>assistant", call, end], SYNTAX, STATE) == [
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
    assert SYNTAX.start_state(f"{OPENED}<|channel|>final<|message|>Sure") == CONTENT
    assert SYNTAX.start_state(f"{OPENED}<|channel|>analysis<|message|>") == REASONING
