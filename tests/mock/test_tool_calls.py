"""The mock's runner by itself: the tools that it calls."""

from typing import Any

import pytest

from lmwire_protocol import Chat, Generate
from lmwire_worker.engine.interface import TokenDelta, ToolCallDelta
from lmwire_worker.mock.replies import Answer, Call, Reply
from lmwire_worker.mock.scenario import Match, Rule
from support.runners.mock_runners import KEY, answer, chat, gather, play, refused, runner

WEATHER = {"type": "function", "function": {"name": "weather"}}
CALL = Call("weather", {"city": "Rome", "days": 2})
TEXT = '{"city":"Rome","days":2}'
BROKEN = Call("weather", '{"city": tr')


def with_tools(**fields: Any) -> Chat:
    return chat(tools=[WEATHER], **fields)


def test_a_call_comes_in_deltas() -> None:
    result = answer(Reply(text="I look.", tool_calls=[CALL]), with_tools())
    deltas = result.calls[0]
    assert [delta.arguments for delta in deltas] == ["", '{"city":', '"Rome",', '"days":', "2}", ""]
    assert [delta.name for delta in deltas] == ["weather", *[None] * 5]
    assert [delta.complete for delta in deltas] == [*[None] * 5, True]
    assert deltas[0].call_id and not deltas[1].call_id
    assert (result.content, result.finish_reason) == ("I look.", "tool_calls")


def test_each_token_of_a_call_is_delivered_and_counted() -> None:
    result = answer(Reply(tool_calls=[CALL]), with_tools())
    assert [(delta.text, delta.token_ids, delta.generated) for delta in result.deltas if delta.generated] == [
        ("", [id], 1) for id in range(6)
    ]


def test_calls_have_ids_of_their_own_unless_they_are_given() -> None:
    calls = answer(Reply(tool_calls=[CALL, CALL, Call("weather", id="mine")]), with_tools()).calls
    ids = [deltas[0].call_id for deltas in calls.values()]
    assert len(set(ids)) == 3
    assert ids[2] == "mine"


def test_a_call_that_is_no_json_comes_back_as_text() -> None:
    result = answer(Reply(text="Hm. ", tool_calls=[BROKEN]), with_tools())
    assert result.calls[0][-1].complete is False
    assert result.content == 'Hm. {"name":"weather","arguments":{"city": tr}'
    assert result.finish_reason == "stop"


def test_a_call_that_is_cut_off_comes_back_as_text() -> None:
    result = answer(Reply(tool_calls=[CALL]), with_tools(max_tokens=2))
    assert [delta.complete for delta in result.calls[0]] == [None, None, False]
    assert (result.content, result.finish_reason) == ('{"name":"weather","arguments":{"city":', "length")


def test_a_cancel_gives_back_what_may_have_become_a_stop_string() -> None:
    mock = runner(Rule(Reply(text="a st", then="wait")))
    assert gather(play(mock, chat(stop=["stop"]), steps=5)).content == "a "
    assert gather(mock.remove(KEY)).content == "st"


def test_a_cancel_within_a_call_gives_it_back() -> None:
    mock = runner(Rule(Reply(tool_calls=[CALL])))
    before = play(mock, with_tools(), steps=4)
    result = gather([*before, *mock.remove(KEY)])
    assert result.calls[0][-1].complete is False
    assert result.content.startswith('{"name":"weather"')
    assert result.finish_reason is None


def test_a_text_that_may_become_a_stop_string_comes_before_the_call() -> None:
    outcomes = play(runner(Rule(Reply(text="st", tool_calls=[CALL]))), with_tools(stop=["stop"]))
    kinds = [
        type(outcome) for outcome in outcomes if isinstance(outcome, ToolCallDelta) or getattr(outcome, "text", "")
    ]
    assert kinds[:2] == [TokenDelta, ToolCallDelta]


@pytest.mark.parametrize("request_", [chat(), with_tools(tool_choice="none"), Generate(prompt="x")])
def test_a_call_that_nobody_reads_is_text(request_: Generate | Chat) -> None:
    result = answer(Reply(tool_calls=[CALL]), request_)
    assert result.content == f'{{"name":"weather","arguments":{TEXT}}}'
    assert (result.calls, result.finish_reason) == ({}, "stop")


def test_all_is_content_for_plain_text() -> None:
    reply = Reply(reasoning="Hm. ", text="I look. ", tool_calls=[CALL])
    result = gather(play(runner(Rule(reply)), with_tools(), raw=True))
    assert result.content == f'Hm. I look. {{"name":"weather","arguments":{TEXT}}}'
    assert sum(delta.reasoning_tokens for delta in result.deltas) == 0


def test_without_parallel_calls_the_answer_ends_after_the_first_whole_one() -> None:
    reply = Reply(tool_calls=[BROKEN, CALL, CALL])
    assert len(answer(reply, with_tools()).whole_calls) == 2
    assert answer(reply, with_tools(parallel_tool_calls=False)).whole_calls == [("weather", TEXT)]


@pytest.mark.parametrize("tool_choice", ["required", {"name": "weather"}])
def test_a_call_that_has_to_come_needs_a_reply_that_has_it(tool_choice: Any) -> None:
    request = with_tools(tool_choice=tool_choice)
    assert answer(Reply(tool_calls=[CALL]), request).whole_calls == [("weather", TEXT)]
    for reply in (Reply(), Reply(text="No."), Reply(tool_calls=[BROKEN]), Reply(choices=[Answer(text="No.")])):
        error = refused(request, Rule(reply))
        assert (error.code, error.field) == ("unsupported", "tool_choice")


def test_another_call_than_the_named_one_is_refused() -> None:
    request = with_tools(tool_choice={"name": "weather"})
    assert refused(request, Rule(Reply(tool_calls=[CALL, Call("news")]))).field == "tool_choice"


def test_arguments_that_must_fit_a_schema_need_a_rule_that_looks_at_the_tools() -> None:
    strict = {"type": "function", "function": {"name": "weather", "strict": True}}
    reply = Reply(tool_calls=[CALL])
    error = refused(chat(tools=[strict]), Rule(reply))
    assert (error.code, error.field) == ("unsupported", "tools[0].function.strict")
    assert answer(reply, chat(tools=[strict]), match=Match(has=["tools"])).whole_calls == [("weather", TEXT)]


def test_every_token_id_has_a_log_probability_those_of_calls_too() -> None:
    result = answer(Reply(reasoning="hm", text="x st", tool_calls=[CALL]), with_tools(logprobs=True, stop=["stop"]))
    assert all(len(delta.logprobs or []) == len(delta.token_ids) for delta in result.deltas)
    assert answer(Reply()).deltas[0].logprobs is None
