"""Conversations that begin with the assistant's turn."""

import pytest

from support.models.chat_templates import GEMMA2, GEMMA3, LLAMA31, MISTRAL, PHI3, QWEN3
from support.runners.prompting import PLAIN, assistant, prompt, system, user


@pytest.mark.parametrize("template", [GEMMA2, GEMMA3])
def test_an_empty_users_turn_opens_the_conversation_where_gemma_demands_one(template: str) -> None:
    found = prompt(template, assistant("Welcome!"), user("Hi"), syntax=PLAIN)
    assert found.text == (
        "<bos><start_of_turn>user\n<end_of_turn>\n<start_of_turn>model\nWelcome!<end_of_turn>\n"
        "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n"
    )


def test_mistral_reads_an_empty_instruction_before_a_greeting() -> None:
    text = prompt(MISTRAL, assistant("Welcome!"), user("Hi"), syntax=PLAIN).text
    assert text.startswith("<bos>[INST] [/INST] Welcome!")
    assert text.endswith("[INST] Hi[/INST]")


@pytest.mark.parametrize("template", [GEMMA2, GEMMA3])
def test_a_system_message_is_the_whole_text_of_that_turn(template: str) -> None:
    text = prompt(template, system("Be brief."), assistant("Welcome!"), user("Hi"), syntax=PLAIN).text
    assert text.startswith("<bos><start_of_turn>user\nBe brief.")
    assert text.count("<start_of_turn>user") == 2
    assert "Be brief.\n\n<" not in prompt(GEMMA2, system("Be brief."), assistant("A"), user("B"), syntax=PLAIN).text


@pytest.mark.parametrize("template", [QWEN3, LLAMA31, PHI3])
def test_a_template_that_accepts_the_order_gets_no_further_turn(template: str) -> None:
    text = prompt(template, assistant("Welcome!"), user("Hi"), syntax=PLAIN).text
    before, found, _ = text.partition("Welcome!")
    assert found
    assert "user" not in before
