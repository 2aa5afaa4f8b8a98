"""What a conversation remembers, seen by a worker that answers with all that it was told."""

from collections.abc import Iterator

import pytest

import lmwire
from fake_worker import fake
from lmwire.command.chat.talk import Talk


@pytest.fixture
def talk() -> Iterator[Talk]:
    with Talk(fake("RecitesTheConversation"), "Be brief.", {}) as talk:
        yield talk


def answer(talk: Talk, prompt: str, capsys: pytest.CaptureFixture[str]) -> str:
    talk.answer(prompt)
    return capsys.readouterr().out


def test_every_turn_tells_the_turns_before(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    first = "(system: Be brief., user: one)"
    assert answer(talk, "one", capsys) == f"{first}\n"
    assert answer(talk, "two", capsys) == f"(system: Be brief., user: one, assistant: {first}, user: two)\n"


def test_forgetting_keeps_the_system_message(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    answer(talk, "one", capsys)
    talk.forget()
    assert answer(talk, "two", capsys) == "(system: Be brief., user: two)\n"


def test_an_image_goes_with_the_next_prompt_and_stays_in_the_conversation(
    talk: Talk, capsys: pytest.CaptureFixture[str]
) -> None:
    image = lmwire.image_part(b"image")
    talk.attach(image)
    shown = [image, {"type": "text", "text": "one"}]
    first = f"(system: Be brief., user: {shown})"
    assert answer(talk, "one", capsys) == f"{first}\n"
    assert answer(talk, "two", capsys) == f"(system: Be brief., user: {shown}, assistant: {first}, user: two)\n"


def test_forgetting_takes_back_what_was_attached(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    talk.attach(lmwire.image_part(b"image"))
    talk.forget()
    assert answer(talk, "one", capsys) == "(system: Be brief., user: one)\n"


def test_a_refused_turn_leaves_no_trace(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(lmwire.RequestFailed):
        talk.answer("refuse")
    assert answer(talk, "two", capsys) == "(system: Be brief., user: two)\n"


def test_a_thought_is_remembered_and_not_shown_in_a_pipe(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(talk, "think", capsys) == "Done.\n"
    talk.answer("think")
    assert talk._messages[-1] == {"role": "assistant", "content": "Done.", "reasoning": "thought ['thought []']"}


def test_a_calls_result_goes_on_with_the_conversation(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    [call] = talk.answer("call").calls
    assert capsys.readouterr().out == '{"name": "look", "arguments": {"at": "it"}}\n'
    assert talk.say([call.result("a cat")]).calls == []
    assert capsys.readouterr().out == "(system: Be brief., user: call, assistant: , tool: a cat)\n"
