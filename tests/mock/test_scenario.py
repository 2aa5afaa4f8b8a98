"""Scenario files: which request gets which reply, what the replies can do, and what is wrong with a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from lmwire_protocol import Chat, Generate, Load, Message, TextPart
from lmwire_worker.mock.replies import Reply
from lmwire_worker.mock.scenario import Match, Rule, Script, read_rules
from support.process.mock_host import GENERATE, LOAD, WorkerOutput, mock
from support.process.worker_process import WorkerProcess
from support.process.worker_thread import run_on_thread, start_on_thread

Json = dict[str, Any]


@pytest.fixture
def scenario(tmp_path: Path) -> Any:
    """Write rules to a file, and return the command of a worker that follows them."""

    def write(*rules: Json) -> list[str]:
        path = tmp_path / "scenario.json"
        path.write_text(json.dumps({"rules": rules}))
        return mock("--scenario", str(path))

    return write


def generate(output: WorkerOutput) -> list[str]:
    return [event["token"] for event in output.of("g") if event["event"] == "token"]


# Which request.

CHAT = Chat(
    messages=[
        Message("user", "Is it warm?"),
        Message("user", [TextPart(text="Rain in "), TextPart(text="Rome?")]),
    ]
)


@pytest.mark.parametrize(
    ("match", "request_", "holds"),
    [
        (Match(), Generate(prompt="x"), True),
        (Match(), CHAT, True),
        (Match(), Load(path="x"), False),
        (Match(cmd="load"), Load(path="x"), True),
        (Match(cmd="chat"), Generate(prompt="x"), False),
        (Match(path="qwen.*4bit$"), Load(path="mlx/qwen3-4bit"), True),
        (Match(path="qwen"), Generate(prompt="qwen"), False),
        (Match(prompt="^on"), Generate(prompt="once"), True),
        (Match(prompt="^ce"), Generate(prompt="once"), False),
        (Match(prompt="^7 8 "), Generate(prompt=[7, 8, 9]), True),
        (Match(last_message="Rain in Rome"), CHAT, True),
        (Match(last_message="warm"), CHAT, False),
        (Match(fields={"temperature": 0.5}), Generate(prompt="x", temperature=0.5), True),
        (Match(fields={"temperature": 0}), Generate(prompt="x"), True),
        (Match(fields={"max_tokens": 3}), Generate(prompt="x"), False),
        (Match(fields={"messages": [{"role": "user", "content": "x"}]}), Chat(messages=[Message("user", "x")]), True),
        (Match(prompt="once", fields={"seed": 1}), Generate(prompt="once", seed=2), False),
        (Match(has=["seed", "n"]), Generate(prompt="x", seed=0, n=2), True),
        (Match(has=["seed", "n"]), Generate(prompt="x", seed=0, n=1), False),
        (Match(has=["tools"]), Generate(prompt="x"), False),
    ],
)
def test_a_rule_is_for_the_requests_that_it_describes(match: Match, request_: Any, holds: bool) -> None:
    assert match.holds(request_) is holds


def test_the_first_rule_that_matches_replies() -> None:
    first, second = Rule(Reply(text="1"), Match(prompt="a")), Rule(Reply(text="2"))
    script = Script([first, second])
    assert script.rule_for(Generate(prompt="a")) is first
    assert script.rule_for(Generate(prompt="b")) is second
    assert script.rule_for(Load(path="a")) is None


def test_a_rule_can_be_used_up() -> None:
    first, second = Rule(Reply(text="1"), times=2), Rule(Reply(text="2"), times=1)
    script = Script([first, second])
    assert [script.rule_for(Generate(prompt="x")) for _ in range(4)] == [first, first, second, None]


# Which reply.


def test_a_reply_is_given_token_by_token(scenario: Any) -> None:
    output = run_on_thread(scenario({"reply": {"tokens": ["Hel", {"text": "lo", "delay_ms": 1}, ""]}}), LOAD, GENERATE)
    assert generate(output) == ["Hel", "lo", ""]
    assert output.terminals("g")[0]["usage"]["completion_tokens"] == 3


def test_a_request_without_a_matching_rule_is_echoed(scenario: Any) -> None:
    rule = {"match": {"prompt": "weather"}, "reply": {"text": "Sunny."}}
    output = run_on_thread(scenario(rule), LOAD, GENERATE, {**GENERATE, "id": "w", "prompt": "the weather?"})
    assert (output.text("g"), output.text("w")) == ("a b c d e", "Sunny.")


def test_a_reply_ends_for_the_reason_that_it_gives(scenario: Any) -> None:
    output = run_on_thread(scenario({"reply": {"text": "cut off", "finish_reason": "length"}}), LOAD, GENERATE)
    assert output.terminals("g")[0]["finish_reason"] == "length"


def test_an_empty_answer_is_an_answer(scenario: Any) -> None:
    output = run_on_thread(scenario({"reply": {"tokens": []}}), LOAD, GENERATE)
    assert [event["event"] for event in output.of("g")] == ["progress", "done"]


def test_a_reply_can_fail_at_once_or_after_some_tokens(scenario: Any) -> None:
    error = {"code": "engine_error", "message": "out of ideas", "retryable": True}
    command = scenario(
        {"match": {"prompt": "late"}, "reply": {"text": "so far", "error": error}}, {"reply": {"error": error}}
    )
    output = run_on_thread(command, LOAD, GENERATE, {**GENERATE, "id": "late", "prompt": "late"})
    assert output.text("late") == "so far"
    assert [event["event"] for event in output.of("g")] == ["error"]
    for id in ("g", "late"):
        assert output.terminals(id) == [
            {"event": "error", "id": id, "error": "out of ideas", "code": "engine_error", "retryable": True}
        ]


def test_a_load_can_be_scripted_and_then_any_path_will_do(scenario: Any) -> None:
    stages = [
        {"stage": "download", "current": 1, "total": 9, "unit": "bytes", "delay_ms": 120},
        {"stage": "warm_up", "current": 1, "unit": "steps", "delay_ms": 120},
    ]
    output = run_on_thread(
        scenario({"match": {"path": "^owner/"}, "reply": {"progress": stages}}), {**LOAD, "path": "owner/name"}
    )
    seen = {(event["stage"], event.get("total")) for event in output.of("l") if event["event"] == "progress"}
    assert seen == {("download", 9), ("warm_up", None)}
    assert output.terminals("l")[0]["path"] == "owner/name"


def test_a_load_that_fails_before_it_reads_keeps_the_model_and_a_later_one_does_not(scenario: Any) -> None:
    error = {"code": "bad_model", "field": "path"}
    reading = [{"stage": "read", "current": 0, "unit": "bytes"}]
    command = scenario(
        {"match": {"path": "early"}, "reply": {"error": error}},
        {"match": {"path": "late"}, "reply": {"progress": reading, "error": error}},
    )
    loads = [{"id": path, "cmd": "load", "path": path} for path in ("early", "late")]
    output = run_on_thread(command, LOAD, *loads)
    assert [output.terminals(path)[0]["loaded"] for path in ("early", "late")] == [True, False]


def test_the_processing_of_a_prompt_can_be_scripted(scenario: Any) -> None:
    stages = [{"stage": "prefill", "current": n, "total": 2, "unit": "tokens", "delay_ms": 120} for n in (1, 2)]
    output = run_on_thread(scenario({"reply": {"progress": stages, "text": "done"}}), LOAD, GENERATE)
    assert [event["current"] for event in output.of("g") if event["event"] == "progress"] == [1, 2]


@pytest.mark.parametrize("then", ["wait", "repeat"])
@pytest.mark.parametrize("own_words", [{"text": "and "}, {}])
def test_a_reply_without_an_end_goes_on_until_it_is_cancelled(scenario: Any, then: str, own_words: Json) -> None:
    with WorkerProcess(start=start_on_thread, command=scenario({"reply": {"then": then, **own_words}})) as worker:
        worker.load("mock")
        worker.send({**GENERATE, "prompt": "and "})
        worker.first_token("g")
        assert worker.call({"id": "c", "cmd": "cancel", "target": "g"})["matched"] == 1
        assert worker.terminal("g")["finish_reason"] == "cancelled"
        words = worker.text("g").split()
        assert words == ["and"] if then == "wait" else set(words) == {"and"}


def test_a_load_without_an_end_is_cancelled(scenario: Any) -> None:
    with WorkerProcess(
        start=start_on_thread, command=scenario({"match": {"cmd": "load"}, "reply": {"then": "wait"}})
    ) as worker:
        worker.send(LOAD)
        worker.wait_for(lambda event: event["event"] == "progress")
        worker.call({"id": "c", "cmd": "cancel", "target": "l"})
        assert worker.terminal("l")["code"] == "cancelled"


def test_one_slow_answer_holds_up_no_other(scenario: Any) -> None:
    slow = {"match": {"prompt": "slow"}, "reply": {"text": "at last", "delay_ms": 300}}
    output = run_on_thread(scenario(slow), LOAD, {**GENERATE, "id": "slow", "prompt": "slow"}, GENERATE)
    ends = [event["id"] for event in output.events if "finish_reason" in event]
    assert ends == ["g", "slow"]


@pytest.mark.slow
def test_ping_reports_an_engine_that_hangs(scenario: Any) -> None:
    with WorkerProcess(command=scenario({"reply": {"text": "once", "then": "hang"}})) as worker:
        worker.load("mock")
        worker.send(GENERATE)
        worker.first_token("g")
        worker.call({"id": "c", "cmd": "cancel", "target": "g"})
        pong = worker.call({"id": "p", "cmd": "ping"})
        assert (pong["state"], pong["active"]) == ("running", 1)


# What is wrong with a file.


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("{", "truncated"),
        ("[]", "Expected `object`"),
        ('{"rules": [], "roles": []}', "`roles`"),
        ('{"rules": [{}]}', "`reply` - at `$.rules[0]`"),
        ('{"rules": [{"reply": {"test": "x"}}]}', "`test` - at `$.rules[0].reply`"),
        ('{"rules": [{"reply": {"text": 1}}]}', "$.rules[0].reply.text"),
        ('{"rules": [{"reply": {"token_ms": -1}}]}', "$.rules[0].reply.token_ms"),
        ('{"rules": [{"reply": {}, "times": 0}]}', "$.rules[0].times"),
        ('{"rules": [{"reply": {"text": "x", "tokens": []}}]}', "tokens: give `text` or `tokens`"),
        ('{"rules": [{"reply": {"then": "wait", "error": {"code": "busy"}}}]}', "then: "),
        ('{"rules": [{"reply": {"error": {"code": "bad_luck"}}}]}', "code: 'bad_luck'"),
        ('{"rules": [{"reply": {}, "match": {"cmd": "ping"}}]}', "$.rules[0].match.cmd"),
        ('{"rules": [{"reply": {}, "match": {"prompt": "("}}]}', "prompt: is not a regular expression"),
        ('{"rules": [{"reply": {}, "match": {"prompt": "x", "path": "y"}}]}', "match: "),
        ('{"rules": [{"reply": {}, "match": {"fields": {"temprature": 1}}}]}', "fields.temprature: "),
        ('{"rules": [{"reply": {}, "match": {"has": ["tool"]}}]}', "has: tool: generate and chat have no such field"),
        ('{"rules": [{"reply": {"text": "x"}, "match": {"cmd": "load"}}]}', "reply: a load has no tokens"),
        ('{"rules": [{"reply": {"choices": [{}]}, "match": {"cmd": "load"}}]}', "reply: a load has no tokens"),
        ('{"rules": [{"reply": {"text": "x", "choices": [{}]}}]}', "choices: give one answer or `choices`"),
        ('{"rules": [{"reply": {"choices": [{"then": "wait"}]}}]}', "`then` - at `$.rules[0].reply.choices[0]`"),
        ('{"rules": [{"reply": {"tool_calls": [{"name": ""}]}}]}', "$.rules[0].reply.tool_calls[0].name"),
        ('{"rules": [{"reply": {"tool_calls": [{"name": "f"}], "then": "repeat"}}]}', "then: a reply with tool calls"),
        (
            '{"rules": [{"reply": {"progress": [{"stage": "read", "current": 1, "unit": "bytes"}]}}]}',
            "reply.progress[0].stage: ",
        ),
        (
            '{"rules": [{"reply": {"progress": [{"stage": "prefill", "current": 1, "unit": "bytes"}]}}]}',
            "reply.progress[0].unit: ",
        ),
    ],
)
def test_the_error_for_a_wrong_scenario_file_names_the_mistake(tmp_path: Path, content: str, named: str) -> None:
    path = tmp_path / "scenario.json"
    path.write_text(content)
    with pytest.raises(ValueError) as wrong:
        read_rules(str(path))
    assert str(wrong.value).startswith(f"{path}: ")
    assert named in str(wrong.value)
