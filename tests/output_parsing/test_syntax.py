"""The markers that are found for a model, and the state that an answer starts in."""

import pytest

from lmwire_worker.output_parsing import CONTENT, REASONING, start_state
from support.runners.answer_parts import CALLS, GEMMA4, HARMONY, TAGS, XTML, parts_of, syntax_of


@pytest.mark.parametrize(
    ("markers", "start", "end"),
    [
        (TAGS, "<think>", "</think>"),
        (("<longcat_think>", "</longcat_think>"), "<longcat_think>", "</longcat_think>"),
        (("<|think:start|>", "<|think:end|>"), "<|think:start|>", "<|think:end|>"),
        (GEMMA4, "<|channel>thought", "<channel|>"),
        (XTML, "<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        (("<ifm|think>", "</ifm|think>"), "<ifm|think>", "</ifm|think>"),
        (("[THINK]", "[/THINK]"), "[THINK]", "[/THINK]"),
        (("<seed:think>", "</seed:think>"), "<seed:think>", "</seed:think>"),
        (("<|START_THINKING|>", "<|END_THINKING|>"), "<|START_THINKING|>", "<|END_THINKING|>"),
        (("<|inner_prefix|>", "<|inner_suffix|>"), "<|inner_prefix|>", "<|inner_suffix|>"),
    ],
)
def test_reasoning_markers_are_those_of_the_vocabulary(markers: tuple[str, ...], start: str, end: str) -> None:
    syntax = syntax_of(*markers)
    assert syntax.has_reasoning
    assert (syntax.think_start, syntax.think_end) == (start, end)
    assert parts_of([f" a{start}\nb\n{end} c "], syntax) == [
        ("content", " a"),
        ("reasoning", "\nb\n"),
        ("content", " c "),
    ]


@pytest.mark.parametrize("ending", ["", "_fast", "_faster"])
def test_k2_horizon_names_its_effort_in_its_markers(ending: str) -> None:
    syntax = syntax_of("<ifm|think>", "</ifm|think>")
    start, end = f"<ifm|think{ending}>", f"</ifm|think{ending}>"
    assert parts_of([f"{start}a{end}b"], syntax) == [("reasoning", "a"), ("content", "b")]
    assert start_state(syntax, f"assistant\n{start}") == REASONING


def test_a_model_without_reasoning_markers_does_not_reason() -> None:
    syntax = syntax_of("<think>", "[/THINK]")
    assert not syntax.has_reasoning
    assert (syntax.think_start, syntax.think_end) == (None, None)
    assert parts_of(["<think>a</think>"], syntax) == [("content", "<think>a</think>")]


def test_markers_around_content_are_dropped() -> None:
    text = "<|open|>think<|sep|>a<|close|>think<|sep|><|open|>response<|sep|>b<|close|>response<|sep|>"
    assert parts_of([text + "<|close|>message<|sep|>"], syntax_of(*XTML)) == [("reasoning", "a"), ("content", "b")]
    cohere = ("<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>")
    assert parts_of(["{}a{}{}b{}".format(*cohere)], syntax_of(*cohere)) == [("reasoning", "a"), ("content", "b")]


def test_a_start_of_content_that_is_a_token_ends_reasoning_that_the_model_left_open() -> None:
    text = "<|open|>think<|sep|>a<|open|>response<|sep|>b<|close|>response<|sep|>"
    assert parts_of([text], syntax_of(*XTML)) == [("reasoning", "a"), ("content", "b")]
    assert parts_of([text.partition("<|sep|>")[2]], syntax_of(*XTML), REASONING) == [
        ("reasoning", "a"),
        ("content", "b"),
    ]
    cohere = ("<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>")
    assert parts_of(["{0}a{2}b{3}".format(*cohere)], syntax_of(*cohere)) == [("reasoning", "a"), ("content", "b")]


def test_a_start_of_content_that_is_text_may_be_quoted_in_reasoning() -> None:
    syntax = syntax_of(*TAGS, "<answer>", "</answer>")
    assert parts_of(["<think>I write <answer></think>b"], syntax) == [
        ("reasoning", "I write <answer>"),
        ("content", "b"),
    ]


@pytest.mark.parametrize(
    ("opening", "state"),
    [
        ("", CONTENT),
        ("<|im_start|>assistant\n", CONTENT),
        ("<|im_start|>assistant\n<think>\n", REASONING),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", CONTENT),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\nSure: ", CONTENT),
        ("<|im_start|>assistant\n<think>\nFirst, ", REASONING),
        ("<think>a</think>b<think>", REASONING),
        ("<|im_start|>assistant\n</think>", CONTENT),
        ("<|im_start|>assistant\n<call>a(", CONTENT),
        ("<think>Then <call>a(", REASONING),
    ],
)
def test_the_prompt_determines_whether_an_answer_starts_in_reasoning(opening: str, state: str) -> None:
    assert start_state(syntax_of(*TAGS, tools=CALLS), opening) == state


def test_an_answer_that_starts_in_reasoning_is_reasoning_up_to_the_end_marker() -> None:
    assert parts_of(["a</think>b"], syntax_of(*TAGS), REASONING) == [("reasoning", "a"), ("content", "b")]


def test_a_call_that_the_prompt_began_is_text() -> None:
    syntax = syntax_of(*TAGS, tools=CALLS)
    assert parts_of(["1)</call>"], syntax, start_state(syntax, "<call>a(")) == [("content", "1)</call>")]


def test_gpt_oss_is_known_by_its_type_and_its_vocabulary() -> None:
    syntax = syntax_of(*HARMONY, model_type="gpt_oss")
    assert (syntax.think_start, syntax.think_end) == ("<|channel|>analysis<|message|>", "<|end|>")
    assert not syntax_of(model_type="gpt_oss").has_reasoning
