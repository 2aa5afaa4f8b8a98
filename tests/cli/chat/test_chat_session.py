"""The messages of a conversation, as a worker receives them that answers with all of them."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

import lmwire
from lmwire.cli.chat.chat_session import ChatSession, Stopped
from support.process.fake_worker import fake


@pytest.fixture
def session() -> Iterator[ChatSession]:
    with ChatSession(fake("RecitesTheConversation"), "Be brief.", {}) as session:
        yield session


def answer(session: ChatSession, prompt: str, capsys: pytest.CaptureFixture[str]) -> str:
    session.send_prompt(prompt)
    return capsys.readouterr().out


@pytest.mark.slow
def test_every_turn_sends_the_turns_before(session: ChatSession, capsys: pytest.CaptureFixture[str]) -> None:
    first = "(system: Be brief., user: one)"
    assert answer(session, "one", capsys) == f"{first}\n"
    assert answer(session, "two", capsys) == f"(system: Be brief., user: one, assistant: {first}, user: two)\n"


@pytest.mark.slow
def test_clearing_keeps_the_system_message(session: ChatSession, capsys: pytest.CaptureFixture[str]) -> None:
    answer(session, "one", capsys)
    session.clear()
    assert answer(session, "two", capsys) == "(system: Be brief., user: two)\n"


@pytest.mark.slow
def test_an_image_is_sent_with_the_next_prompt_and_stays_in_the_conversation(
    session: ChatSession, capsys: pytest.CaptureFixture[str]
) -> None:
    image = lmwire.image_part(b"image")
    session.attach(image)
    shown = [image, {"type": "text", "text": "one"}]
    first = f"(system: Be brief., user: {shown})"
    assert answer(session, "one", capsys) == f"{first}\n"
    assert answer(session, "two", capsys) == f"(system: Be brief., user: {shown}, assistant: {first}, user: two)\n"


@pytest.mark.slow
def test_clearing_removes_attachments(session: ChatSession, capsys: pytest.CaptureFixture[str]) -> None:
    session.attach(lmwire.image_part(b"image"))
    session.clear()
    assert answer(session, "one", capsys) == "(system: Be brief., user: one)\n"


@pytest.mark.slow
def test_a_refused_turn_leaves_no_trace(session: ChatSession, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(lmwire.RequestFailed):
        session.send_prompt("refuse")
    assert answer(session, "two", capsys) == "(system: Be brief., user: two)\n"


@pytest.mark.slow
def test_reasoning_stays_in_the_conversation_and_is_not_shown_in_a_pipe(
    session: ChatSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(session, "think", capsys) == "Done.\n"
    session.send_prompt("think")
    assert session.messages[-1] == {"role": "assistant", "content": "Done.", "reasoning": "thought ['thought []']"}


@pytest.mark.slow
def test_the_result_of_a_call_continues_the_conversation(
    session: ChatSession, capsys: pytest.CaptureFixture[str]
) -> None:
    [call] = session.send_prompt("call").calls
    assert capsys.readouterr().out == '{"name": "look", "arguments": {"at": "it"}}\n'
    assert session.send([call.result("a cat")]).calls == []
    assert capsys.readouterr().out == "(system: Be brief., user: call, assistant: , tool: a cat)\n"


@pytest.mark.slow
def test_ctrl_c_at_the_moment_of_the_request_stops_its_answer(
    session: ChatSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[lmwire.Stream[Any]] = []
    send = lmwire.Worker.chat

    def interrupted(worker: lmwire.Worker, *messages: Any, **options: Any) -> lmwire.Stream[Any]:
        sent.append(send(worker, *messages, **options))
        signal.raise_signal(signal.SIGINT)
        return sent[0]

    monkeypatch.setattr(lmwire.Worker, "chat", interrupted)
    with pytest.raises(Stopped):
        session.send_prompt("one")
    with pytest.raises(RuntimeError, match="closed before its end"):
        _ = sent[0].result
