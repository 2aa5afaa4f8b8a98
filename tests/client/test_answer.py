"""Answers as deltas and as a whole: reasoning, tool calls, choices, log-probabilities."""

import json
from typing import Any

import pytest

from lmwire import LmwireError, MessageDict, TokenDelta, ToolCallDelta
from support.process.fake_worker import fake, result
from support.protocol.both_clients import MakeWorker, on_one_client


def text(token: str, **fields: Any) -> dict[str, Any]:
    return {"event": "token", "token": token, "token_ids": [ord(character) for character in token], **fields}


def call(arguments: str = "", index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"event": "tool_call", "index": index, "arguments": arguments, **fields}


def script(*events: dict[str, Any], reason: str = "stop", **fields: Any) -> str:
    """Return a prompt for the fake worker: it sends these events, then a result."""
    done = {name: value for name, value in result("", reason).items() if name != "id"}
    return json.dumps([*events, done | fields])


REASONING = script(text("Let me ", channel="reasoning"), text("see.", channel="reasoning"), text("It is "), text("so."))
CALLS = script(
    text("Looking."),
    call(call_id="a", name="weather"),
    call('{"city": ', 1, call_id="b", name="time"),
    call('{"city":"Oslo"}'),
    call(complete=True),
    call('"Rome"}', 1, complete=True),
    call('{"ci', 2, call_id="c", name="weather"),
    call(index=2, complete=False),
    text('<tool_call>{"ci'),
    reason="tool_calls",
)


@on_one_client
async def test_a_loop_over_text_gets_the_answer_without_reasoning(make_worker: MakeWorker) -> None:
    async with make_worker(fake("PlaysItsPrompt")) as worker:
        deltas = [delta async for delta in worker.generate(REASONING)]
        assert [delta.text for delta in deltas] == ["", "", "It is ", "so."]
        assert [delta.reasoning for delta in deltas] == ["Let me ", "see.", "", ""]
        assert await worker.generate(REASONING).text() == "It is so."


@on_one_client
async def test_a_whole_answer_has_separate_reasoning_and_is_the_next_turns_message(make_worker: MakeWorker) -> None:
    async with make_worker(fake("PlaysItsPrompt")) as worker:
        answer = await worker.generate(REASONING).answer()
    assert (answer.text, answer.reasoning, answer.finish_reason) == ("It is so.", "Let me see.", "stop")
    assert answer.message == {"role": "assistant", "content": "It is so.", "reasoning": "Let me see."}


@on_one_client
async def test_a_whole_answer_includes_what_was_read_before(make_worker: MakeWorker) -> None:
    async with (
        make_worker(fake("PlaysItsPrompt")) as worker,
        worker.generate(script(text("one"), text("two"))) as stream,
    ):
        async for delta in stream:
            assert delta.text == "one"
            break
        assert (await stream.answer()).text == "onetwo"
        assert (await stream.answer()).text == "onetwo"


@on_one_client
async def test_tool_calls_arrive_as_deltas_without_text(make_worker: MakeWorker) -> None:
    async with make_worker(fake("PlaysItsPrompt")) as worker:
        deltas = [delta async for delta in worker.generate(CALLS)]
    assert "".join(delta.text for delta in deltas) == 'Looking.<tool_call>{"ci'
    assert [delta.arguments for delta in deltas if isinstance(delta, ToolCallDelta) and delta.index == 1] == [
        '{"city": ',
        '"Rome"}',
    ]
    assert sum(len(delta.token_ids) for delta in deltas) == len('Looking.<tool_call>{"ci')


@on_one_client
async def test_complete_tool_calls_are_assembled_and_void_ones_omitted(make_worker: MakeWorker) -> None:
    async with make_worker(fake("PlaysItsPrompt")) as worker:
        answer = await worker.generate(CALLS).answer()
    assert [(called.id, called.name, called.arguments) for called in answer.tool_calls] == [
        ("a", "weather", {"city": "Oslo"}),
        ("b", "time", {"city": "Rome"}),
    ]
    assert answer.text == 'Looking.<tool_call>{"ci'


@on_one_client
async def test_an_answer_and_the_results_of_its_calls_continue_the_conversation(make_worker: MakeWorker) -> None:
    messages: list[MessageDict] = [{"role": "user", "content": "Weather?"}]
    async with make_worker(fake("PlaysItsPrompt")) as worker:
        answer = await worker.generate(CALLS).answer()
        messages += [answer.message, *(called.result("fine") for called in answer.tool_calls)]
        sent = json.loads(await worker.chat(messages).text())["messages"]
    assert sent == messages
    assert sent[1]["tool_calls"][1] == {"id": "b", "name": "time", "arguments": {"city": "Rome"}}
    assert sent[3] == {"role": "tool", "tool_call_id": "b", "name": "time", "content": "fine"}


@on_one_client
async def test_a_call_cut_off_before_its_first_character_is_void(make_worker: MakeWorker) -> None:
    cut = script(call('{"ci', call_id="a", name="weather"), reason="cancelled")
    async with make_worker(fake("PlaysItsPrompt")) as worker:
        assert (await worker.generate(cut).answer()).tool_calls == []


@on_one_client
async def test_arguments_that_are_not_an_object_are_an_error(make_worker: MakeWorker) -> None:
    broken = script(call("[1]", call_id="a", name="weather", complete=True), reason="tool_calls")
    async with make_worker(fake("PlaysItsPrompt")) as worker:
        with pytest.raises(LmwireError, match=r"'weather' has arguments that are not a JSON object: '\[1\]'"):
            await worker.generate(broken).answer()


@on_one_client
async def test_several_answers_are_kept_apart(make_worker: MakeWorker) -> None:
    ends = [
        {"finish_reason": "stop", "completion_tokens": 3, "stop": "."},
        {"finish_reason": "length", "completion_tokens": 3},
    ]
    both = script(text("on"), text("tw", choice=1), text("e"), text("o", choice=1), choices=ends, stop=".")
    async with make_worker(fake("PlaysItsPrompt")) as worker:
        assert [(delta.choice, delta.text) async for delta in worker.generate(both)] == [
            (0, "on"),
            (1, "tw"),
            (0, "e"),
            (1, "o"),
        ]
        answers = await worker.generate(both).answers()
        assert [(answer.text, answer.finish_reason, answer.stop) for answer in answers] == [
            ("one", "stop", "."),
            ("two", "length", None),
        ]
        assert await worker.generate(both).text() == "one"
        assert await worker.generate(both).answer() == answers[0]


@on_one_client
async def test_tokens_have_their_log_probabilities(make_worker: MakeWorker) -> None:
    top = [{"token_id": 97, "token": "a", "logprob": -0.1}, {"token_id": 98, "token": "b", "logprob": None}]
    logprob = {"token_id": 97, "token": "a", "logprob": -0.1, "top": top}
    async with make_worker(fake("PlaysItsPrompt")) as worker:
        answer = await worker.generate(script(text("a", logprobs=[logprob]), text("a", logprobs=[logprob]))).answer()
    assert answer.token_ids == [97, 97]
    assert [entry.logprob for entry in answer.logprobs] == [-0.1, -0.1]
    assert [(other.token, other.logprob) for other in answer.logprobs[1].top] == [("a", -0.1), ("b", None)]


@on_one_client
async def test_additions_of_a_later_version_are_ignored(make_worker: MakeWorker) -> None:
    later = script(
        text("♫", channel="song"),
        text("yes"),
        reason="tired",
        choices=[{"finish_reason": "tired", "completion_tokens": 2}],
    )
    async with make_worker(fake("PlaysItsPrompt")) as worker, worker.generate(later) as stream:
        answer = await stream.answer()
        assert (answer.text, answer.reasoning, answer.finish_reason) == ("yes", "", "other")
        assert stream.result.finish_reason == "other"
        async for delta in worker.generate(later):
            assert isinstance(delta, TokenDelta)
            assert (delta.channel, delta.token) == ("song", "♫")
            break
