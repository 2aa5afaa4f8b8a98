"""Reasoning on, off and by default, in the prompt."""

from typing import Any

import pytest

from lmwire_protocol import RequestError
from lmwire_worker.output_parsing import Syntax
from support.models.chat_templates import DEEPSEEK_R1, GPT_OSS, LLAMA31, PHI4_REASONING, QWEN3
from support.runners.prompting import HARMONY, PLAIN, QWEN, WEATHER, assistant, prompt, tokenized, user

FLAG = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>"
DEEPSEEK_V3 = FLAG + "{{ '<think>' if thinking else '</think>' }}{% endif %}"
GLM = (
    FLAG.replace(
        "{{ m.content", "{{ '\n<think>' + m.reasoning_content + '</think>\n' if m.reasoning_content }}{{ m.content"
    )
    + "{{ '<think></think>' if enable_thinking is defined and not enable_thinking }}{% endif %}"
)
EFFORT = (
    "{% if (reasoning_effort or 'none') not in ['none', 'high'] %}{{ raise_exception('none or high') }}{% endif %}"
    "[{{ reasoning_effort or 'none' }}]" + FLAG + "{{ '<think>' if false }}{% endif %}"
)
BUDGET = FLAG + "{{ '<think></think>' if thinking_budget is defined and thinking_budget == 0 }}{% endif %}"


def opening(template: str | None, reasoning: str, syntax: Syntax = QWEN, **fields: Any) -> str:
    return prompt(template, user("Hi"), syntax=syntax, reasoning=reasoning, **fields).opening


@pytest.mark.parametrize(
    ("template", "auto", "on", "off"),
    [
        (None, "", "<think>\n", "<think>\n\n</think>\n\n"),
        (QWEN3, "", "<think>\n", "<think>\n\n</think>\n\n"),
        (GLM, "", "\n<think>", "<think></think>"),
        (DEEPSEEK_V3, "</think>", "<think>", "</think>"),
        (BUDGET, "", "<think>\n", "<think></think>"),
    ],
)
def test_a_templates_own_switch_is_used_and_a_thought_is_begun_where_that_leaves_it_to_the_model(
    template: str | None, auto: str, on: str, off: str
) -> None:
    head = "<|im_start|>assistant\n" if template in (None, QWEN3) else "<assistant>"
    assert [opening(template, wish) for wish in ("auto", "on", "off")] == [head + auto, head + on, head + off]


def test_an_effort_of_none_is_a_switch_where_the_template_knows_it() -> None:
    found = [prompt(EFFORT, user("Hi"), reasoning=wish).text[:6] for wish in ("auto", "on", "off")]
    assert found == ["[none]", "[high]", "[none]"]


def test_the_default_is_the_templates_own_and_nothing_is_passed() -> None:
    template = "{{ 'passed' if enable_thinking is defined }}{{ messages[0].content }}"
    assert prompt(template, user("Hi")).text == "Hi"


def test_without_a_switch_reasoning_that_the_template_starts_is_closed() -> None:
    opened = "<｜Assistant｜><think>\n"
    assert opening(DEEPSEEK_R1, "auto") == opening(DEEPSEEK_R1, "on") == opened
    assert opening(DEEPSEEK_R1, "off") == opened + "\n</think>\n\n"


def test_without_a_switch_a_model_that_begins_its_thoughts_itself_gets_a_whole_one_or_a_beginning() -> None:
    head = "<|im_start|>assistant<|im_sep|>"
    assert opening(PHI4_REASONING, "auto") == head
    assert opening(PHI4_REASONING, "on") == head + "<think>\n"
    assert opening(PHI4_REASONING, "off") == head + "<think>\n\n</think>\n\n"


def test_reasoning_is_closed_as_the_template_closes_earlier_reasoning() -> None:
    template = FLAG.replace(
        "{{ m.c", "{{ '<think>' + m.reasoning_content + '</think>;' if m.reasoning_content }}{{ m.c"
    )
    assert opening(template + "<think>{% endif %}", "off") == "<assistant><think></think>;"


def test_reasoning_is_closed_as_before_a_call_by_templates_that_keep_it_nowhere_else() -> None:
    kept = "<think>{{ m.reasoning }}</think>|{{ m.tool_calls[0].function }}"
    template = (
        FLAG.replace("{{ m.c", "{% if m.tool_calls and m.reasoning %}" + kept + "{% endif %}{{ m.c")
        + "<think>{% endif %}"
    )
    assert opening(template, "off") == "<assistant><think></think>"


def test_empty_past_reasoning_shows_the_white_space_around_new_one() -> None:
    template = FLAG.replace("{{ m.c", "{{ '<think></think>' if m.role == 'assistant' }}{{ m.c") + "{% endif %}"
    assert opening(template, "on") == "<assistant><think>"
    assert opening(template, "off") == "<assistant><think></think>"


def test_content_and_calls_after_closed_reasoning_have_different_headers() -> None:
    template = FLAG.replace("{{ m.c", "{{ '<think>' + m.thinking + '</think><|content|>' if m.thinking }}{{ m.c")
    template += "{{ '<think>' }}{% endif %}"
    assert opening(template, "off") == "<assistant><think></think><|content|>"
    assert opening(template, "off", tools=[WEATHER]) == "<assistant><think></think>"


def test_harmony_starts_with_the_requested_channel() -> None:
    head, analysis = "<|start|>assistant", "<|channel|>analysis<|message|>"
    assert opening(GPT_OSS, "auto", HARMONY) == head
    assert opening(GPT_OSS, "on", HARMONY) == head + analysis
    silent = head + analysis + "<|end|>" + head
    assert opening(GPT_OSS, "off", HARMONY) == silent + "<|channel|>final<|message|>"
    assert opening(GPT_OSS, "off", HARMONY, tools=[WEATHER]) == silent


def test_a_prefix_follows_the_closed_reasoning() -> None:
    assert opening(DEEPSEEK_R1, "off", prefix="Well").endswith("<think>\n\n</think>\n\nWell")
    assert opening(QWEN3, "off", prefix="Well").endswith("</think>\n\nWell")
    assert opening(PHI4_REASONING, "on", prefix="Well").endswith("<|im_sep|>Well")


@pytest.mark.parametrize(
    ("template", "syntax"),
    [(LLAMA31, PLAIN), (QWEN3, PLAIN), (LLAMA31, QWEN)],
    ids=["nothing knows thoughts", "the vocabulary has no marks", "the template has none"],
)
def test_reasoning_on_is_refused_for_a_model_without_reasoning(template: str, syntax: Syntax) -> None:
    with pytest.raises(RequestError) as caught:
        opening(template, "on", syntax)
    assert (caught.value.code, caught.value.field) == ("unsupported", "reasoning")
    assert opening(template, "off", PLAIN) == opening(template, "off", syntax)


def test_reasoning_and_the_templates_switch_must_not_contradict_each_other() -> None:
    wanted = prompt(QWEN3, user("Hi"), reasoning="on")
    assert prompt(QWEN3, user("Hi"), reasoning="on", template_args={"enable_thinking": True}) == wanted
    with pytest.raises(RequestError) as caught:
        prompt(QWEN3, user("Hi"), reasoning="on", template_args={"enable_thinking": False})
    assert (caught.value.code, caught.value.field) == ("invalid_request", "template_args.enable_thinking")
    assert "<think>" in prompt(QWEN3, user("Hi"), template_args={"enable_thinking": False}).text


@pytest.mark.parametrize("template", [None, QWEN3, GLM, DEEPSEEK_V3, DEEPSEEK_R1, PHI4_REASONING, EFFORT])
def test_tokenize_begins_and_closes_thoughts_as_chat_does(template: str | None) -> None:
    wishes = ("auto", "on", "off")
    found = [tokenized(template, messages=[user("Hi")], reasoning=wish) for wish in wishes]
    assert found == [prompt(template, user("Hi"), reasoning=wish) for wish in wishes]
    assert tokenized(template, messages=[user("Hi")]) == found[0]
    assert found[1] != found[2]


@pytest.mark.parametrize(
    ("template", "arguments", "field"),
    [(LLAMA31, {}, "reasoning"), (QWEN3, {"enable_thinking": False}, "template_args.enable_thinking")],
    ids=["the template has no thoughts", "its switch says otherwise"],
)
def test_tokenize_refuses_the_reasoning_that_chat_refuses(template: str, arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError) as of_chat:
        prompt(template, user("Hi"), reasoning="on", template_args=arguments)
    with pytest.raises(RequestError) as caught:
        tokenized(template, messages=[user("Hi")], reasoning="on", template_args=arguments)
    assert caught.value.field == field
    assert (caught.value.code, caught.value.message) == (of_chat.value.code, of_chat.value.message)


def test_earlier_reasoning_goes_to_templates_that_write_it() -> None:
    turns = [user("Hi"), assistant("Hello", reasoning="A greeting.")]
    assert (
        "<think>\nA greeting.\n</think>\n\nHello"
        in prompt(QWEN3, *turns, add_generation_prompt=False, continue_final_message=True).text
    )
    harmony = prompt(GPT_OSS, *turns, add_generation_prompt=False, continue_final_message=True, syntax=HARMONY)
    assert "<|channel|>analysis<|message|>A greeting.<|end|>" in harmony.text
    assert "A greeting." not in prompt(LLAMA31, *turns, syntax=PLAIN).text


PARTS = (
    "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
    "{% if p.type == 'text' %}{{ p.text }}{% else %}OTHER{% endif %}{% endfor %}{% endif %}{% endfor %}"
)


@pytest.mark.parametrize(
    ("other", "written"), [("[{{ p.thinking }}]", "[A greeting.]Hello"), ("{{ p | tojson }}", "Hello")]
)
def test_earlier_reasoning_is_a_part_of_the_content_for_templates_that_know_such_parts(
    other: str, written: str
) -> None:
    turns = [user("Hi"), assistant("Hello", reasoning="A greeting."), user("Bye")]
    assert prompt(PARTS.replace("OTHER", other), *turns).text == f"<user>Hi<assistant>{written}<user>Bye"


def test_white_space_that_the_template_writes_around_earlier_reasoning_is_not_doubled() -> None:
    template = (
        "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>"
        "{{ '\n\n' }}{% endif %}{{ m.content }}{% endfor %}"
    )
    written = "<user>Hi<assistant><think>\n A greeting. \n</think>\n\n Hello<user>Bye"
    for reasoning, text in (("\n A greeting. \n", "\n\n Hello"), (" A greeting. ", " Hello")):
        assert prompt(template, user("Hi"), assistant(text, reasoning=reasoning), user("Bye")).text == written


@pytest.mark.parametrize("template", [None, QWEN3, GLM, DEEPSEEK_V3])
def test_a_message_of_reasoning_alone_can_be_continued(template: str | None) -> None:
    begun = assistant("", reasoning="First, I")
    found = prompt(template, user("Hi"), begun, continue_final_message=True, add_generation_prompt=False)
    assert found.text.endswith(found.opening)
    assert found.text.endswith("First, I")
    assert QWEN.think_start is not None
    assert found.opening.count(QWEN.think_start) == 1
    assert "</think>" not in found.opening


def test_reasoning_alone_cannot_be_continued_by_a_model_that_does_not_reason() -> None:
    with pytest.raises(RequestError) as caught:
        begun = assistant("", reasoning="First, I")
        prompt(LLAMA31, user("Hi"), begun, syntax=PLAIN, continue_final_message=True, add_generation_prompt=False)
    assert (caught.value.code, caught.value.field) == ("invalid_request", "continue_final_message")
