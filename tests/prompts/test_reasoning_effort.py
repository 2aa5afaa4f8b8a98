"""The effort of reasoning: the template's own word where it takes one, and a budget where it does not."""

from typing import Any

import pytest

from lmwire_protocol import RequestError
from lmwire_worker.output_parsing import Syntax
from lmwire_worker.prompts.chat_template import ChatTemplate
from lmwire_worker.prompts.reasoning import find_efforts, find_reasoning_variables
from lmwire_worker.prompts.template_traits import MessageFormat
from support.models.chat_templates import GPT_OSS, LLAMA31, PHI4_REASONING, QWEN3
from support.runners.prompting import HARMONY, PLAIN, QWEN, prompt, tokenized, tokenizer, user

TURNS = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
OPENED = "{% if add_generation_prompt %}[assistant]OPENING{% endif %}"
ANY_WORD = "How hard: {{ reasoning_strength or 'high' }}." + TURNS + OPENED.replace("OPENING", "{{ '<think>' }}")
CHECKED = (
    "{% set reasoning_effort = reasoning_effort or 'no_think' %}"
    "{% if reasoning_effort not in ['no_think', 'low', 'high'] %}{{ raise_exception('no such effort') }}{% endif %}"
    "(effort {{ reasoning_effort }})"
    + TURNS
    + OPENED.replace("OPENING", "{{ '<think></think>' if reasoning_effort == 'no_think' else '<think>' }}")
)
ONLY_MAX = (
    "{% if thinking and reasoning_effort == 'max' %}Think as long as you can. {% endif %}"
    + TURNS
    + OPENED.replace("OPENING", "{{ '<think>' if thinking else '</think>' }}")
)
CLOSES_WHEN_LOW = TURNS + OPENED.replace(
    "OPENING", "{{ '<think></think>' if reasoning_effort in ['low', 'minimal'] else '<think>' }}"
)
FLAG_FOR_LOW = TURNS + "{{ ' (be brief)' if low_effort }}" + OPENED.replace("OPENING", "<think>")
NUMBER = (
    "{% if thinking_budget is defined %}Think for {{ thinking_budget }} tokens.{% endif %}"
    + TURNS
    + OPENED.replace("OPENING", "{{ '<think></think>' if thinking_budget == 0 else '<think>' }}")
)
MODES = TURNS + OPENED.replace(
    "OPENING",
    "{% if thinking_mode == 'enabled' %}<think>{% elif thinking_mode == 'disabled' %}</think>{% endif %}",
)
OPTION = (
    "thoughts {{ thinking_option or 'on' }} "
    + TURNS
    + OPENED.replace("OPENING", "<think>").replace(
        "<think>", "{{ '<think></think>' if thinking_option == 'off' else '<think>' }}"
    )
)
CHAT_MODE = TURNS + OPENED.replace("OPENING", "{{ '</think>' if thinking_mode == 'chat' else '<think>' }}").replace(
    "thinking_mode == 'chat'", "(thinking_mode or 'thinking') == 'chat'"
)
SKIPPED = TURNS + OPENED.replace("OPENING", "{{ '<think></think>' if skip_thinking else '<think>' }}")
NEVER_SET = TURNS + "{{ reasoning_note }}" + OPENED.replace("OPENING", "<think>")
EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")


def said(
    template: str | None, effort: str | None, syntax: Syntax = QWEN, reasoning: str = "on", **fields: Any
) -> tuple[str, int | None]:
    """The prompt's text and the budget that goes with it."""
    found = prompt(template, user("Hi"), syntax=syntax, reasoning=reasoning, reasoning_effort=effort, **fields)
    return found.text, found.effort_budget


def test_a_template_that_writes_any_word_gets_the_usual_ones() -> None:
    found = [said(ANY_WORD, effort) for effort in EFFORTS]
    words = ["low", "low", "medium", "high", "high", "high"]
    assert found == [(f"How hard: {word}.[user]Hi[assistant]<think>", None) for word in words]


def test_harmony_gets_the_word_and_opens_its_turn_as_ever() -> None:
    text, budget = said(GPT_OSS, "low", HARMONY)
    assert "Reasoning: low\n" in text
    assert text.endswith("<|start|>assistant")
    assert budget is None
    assert "Reasoning: medium\n" in prompt(GPT_OSS, user("Hi"), syntax=HARMONY).text


def test_a_template_that_checks_the_word_gets_only_words_that_it_takes() -> None:
    expected = [("low", None), ("low", None), ("high", 8192), ("high", None), ("high", None), ("high", None)]
    assert [said(CHECKED, effort) for effort in EFFORTS] == [
        (f"(effort {word})[user]Hi[assistant]<think>", budget) for word, budget in expected
    ]


def test_a_word_that_the_template_ignores_becomes_a_budget() -> None:
    opened = "[user]Hi[assistant]<think>"
    assert said(ONLY_MAX, "low") == (opened, 1024)
    assert said(ONLY_MAX, "high") == (opened, None)
    assert said(ONLY_MAX, "xhigh") == said(ONLY_MAX, "max") == (f"Think as long as you can. {opened}", None)


def test_a_template_may_answer_a_low_effort_with_closed_reasoning() -> None:
    assert said(CLOSES_WHEN_LOW, "low") == ("[user]Hi[assistant]<think></think>", None)
    assert said(CLOSES_WHEN_LOW, "high") == ("[user]Hi[assistant]<think>", None)


def test_a_flag_can_stand_for_one_effort() -> None:
    assert said(FLAG_FOR_LOW, "low") == ("[user]Hi (be brief)[assistant]<think>", None)
    assert said(FLAG_FOR_LOW, "medium") == ("[user]Hi[assistant]<think>", 8192)


def test_a_template_that_takes_a_number_of_tokens_gets_the_number() -> None:
    assert said(NUMBER, "low") == ("Think for 1024 tokens.[user]Hi[assistant]<think>", None)
    assert said(NUMBER, "high") == ("[user]Hi[assistant]<think>", None)
    assert prompt(NUMBER, user("Hi"), reasoning="off").text.endswith("[assistant]<think></think>")


@pytest.mark.parametrize("template", [QWEN3, PHI4_REASONING], ids=["with a switch", "without one"])
def test_without_a_word_for_it_an_effort_is_a_budget(template: str) -> None:
    on, budgets = prompt(template, user("Hi"), reasoning="on").text, [256, 1024, 8192, None, None, None]
    assert [said(template, effort) for effort in EFFORTS] == [(on, budget) for budget in budgets]


@pytest.mark.parametrize(
    ("template", "on", "off"),
    [
        (CHECKED, "<think>", "<think></think>"),
        (MODES, "<think>", "</think>"),
        (OPTION, "<think>", "<think></think>"),
        (CHAT_MODE, "<think>", "</think>"),
        (SKIPPED, "<think>", "<think></think>"),
    ],
    ids=["no_think", "enabled or disabled", "on or off", "thinking or chat", "skip_thinking"],
)
def test_any_variable_whose_values_open_and_close_reasoning_is_a_switch(template: str, on: str, off: str) -> None:
    found = [prompt(template, user("Hi"), reasoning=mode).opening for mode in ("on", "off")]
    assert found == [f"[assistant]{on}", f"[assistant]{off}"]


def test_a_variable_that_is_only_printed_is_no_switch() -> None:
    found = [prompt(NEVER_SET, user("Hi"), reasoning=mode).text for mode in ("auto", "on", "off")]
    assert found == ["[user]Hi[assistant]<think>"] * 2 + ["[user]Hi[assistant]<think>\n</think>\n\n"]


@pytest.mark.parametrize(
    ("template", "syntax", "efforts"),
    [
        (GPT_OSS, HARMONY, ["low", "medium", "high"]),
        (CHECKED, QWEN, ["low", "high"]),
        (ONLY_MAX, QWEN, ["max"]),
        (CLOSES_WHEN_LOW, QWEN, ["minimal", "low"]),
        (QWEN3, QWEN, []),
        (LLAMA31, QWEN, None),
        (QWEN3, PLAIN, None),
    ],
)
def test_a_model_says_which_efforts_its_template_takes(
    template: str, syntax: Syntax, efforts: list[str] | None
) -> None:
    assert find_efforts(tokenizer(template), syntax) == efforts


def test_a_template_that_cannot_be_used_takes_no_effort() -> None:
    assert find_efforts(tokenizer("{% if %}"), QWEN) is None


def test_tokenize_writes_the_effort_as_chat_does() -> None:
    found = tokenized(CHECKED, messages=[user("Hi")], reasoning_effort="low")
    assert found == prompt(CHECKED, user("Hi"), reasoning_effort="low")


@pytest.mark.parametrize(("template", "syntax"), [(ONLY_MAX, QWEN), (QWEN3, QWEN), (LLAMA31, PLAIN)])
def test_an_effort_does_not_decide_whether_a_model_reasons(template: str, syntax: Syntax) -> None:
    for mode in ("auto", "off"):
        assert said(template, "max", syntax, mode) == said(template, None, syntax, mode)


def test_a_word_counts_wherever_the_template_reasons_by_itself() -> None:
    assert said(ANY_WORD, "low", reasoning="auto") == said(ANY_WORD, "low")


def test_an_effort_and_another_word_for_the_template_contradict_each_other() -> None:
    assert said(CHECKED, "low", template_args={"reasoning_effort": "low"}) == said(CHECKED, "low")
    with pytest.raises(RequestError) as caught:
        said(CHECKED, "low", template_args={"reasoning_effort": "high"})
    assert (caught.value.code, caught.value.field) == ("invalid_request", "template_args.reasoning_effort")


def test_reasoning_that_a_template_leaves_to_the_model_is_opened_unless_the_template_takes_the_effort() -> None:
    free = ANY_WORD.replace("{{ '<think>' }}", "{{ '<think>' if false }}")
    assert said(free, "low")[0].endswith("[assistant]")
    assert said(free, None)[0].endswith("[assistant]<think>\n")


def test_a_template_with_very_many_variables_is_rendered_a_few_times() -> None:
    rendered: list[dict[str, Any]] = []

    def render(**variables: Any) -> str:
        rendered.append(variables)
        return repr(variables)

    names = frozenset(f"think_effort_{number}" for number in range(10_000))
    find_reasoning_variables(ChatTemplate(render, variables=names), MessageFormat())
    assert 0 < len(rendered) < 300
