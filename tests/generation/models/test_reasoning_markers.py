"""Markers around reasoning that a load names."""

from pathlib import Path

import pytest

from lmwire_protocol import RequestError
from support.runners.answer_parts import HARMONY, TAGS, parts_of, syntax_of
from support.runners.generation_runners import ask, chat, open_runner

pytestmark = pytest.mark.slow

TINY = Path("builtin:tiny")
ASKED = chat("Who are you?", reasoning="off", max_tokens=40)


def test_text_between_the_named_markers_is_reasoning() -> None:
    (plain,) = ask(open_runner(TINY), ASKED)
    before, start, rest = plain.text.partition(" tiny ")
    between, end, after = rest.partition(" ships ")
    assert start and end
    (answer,) = ask(open_runner(TINY, reasoning_start=start, reasoning_end=end), ASKED)
    assert (answer.text, answer.reasoning) == (before + after, between)


def test_the_models_own_markers_are_text_beside_named_ones() -> None:
    syntax = syntax_of(*TAGS, reasoning_markers=("<reason>\n", "</reason>"))
    text = "<think>a</think><reason>\nb</reason>c"
    assert parts_of(text, syntax) == [("content", "<think>a</think>"), ("reasoning", "b"), ("content", "c")]


def test_named_markers_are_refused_where_answers_are_messages() -> None:
    with pytest.raises(RequestError, match="messages with channels") as refused:
        syntax_of(*HARMONY, model_type="gpt_oss", reasoning_markers=("<a>", "</a>"))
    assert (refused.value.code, refused.value.field) == ("unsupported", "reasoning_start")
