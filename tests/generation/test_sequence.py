"""The path of one choice from tokens to events. There is no model: a token is a letter."""

from collections.abc import Iterable
from typing import Any

import pytest

from lmwire_protocol import Chat, Generate, Message, Tool
from lmwire_protocol.events import Logprob
from lmwire_protocol.limits import TOOL_CALLS
from lmwire_protocol.messages import Function
from lmwire_worker.engine.interface import Failed, RunnerEvent, TokenDelta, ToolCallDelta
from lmwire_worker.generation.output_processor import OutputProcessor
from lmwire_worker.generation.request_table import Sequence
from lmwire_worker.generation.sampling.logprobs import LogprobHandle
from lmwire_worker.output_parsing import OutputParser, start_state
from lmwire_worker.text_stream.string_matcher import StringAutomaton
from lmwire_worker.tool_parsers import FORMATS
from support.runners.answer_parts import TAGS, syntax_of

END = 0
TOOLS = [Tool(function=Function(name="f", parameters={"type": "object"}))]


class Letters:
    """Tokens are code points; an end needs no flush."""

    def add(self, token: int) -> str:
        return chr(token)

    def flush(self, *, is_cut: bool = False) -> str:
        return ""


class Resolved(LogprobHandle):
    """A token with a log-probability of -1."""

    def __init__(self, token: int) -> None:
        self._token = token

    def resolve(self) -> tuple[int, float, list[tuple[int, float]]]:
        return self._token, -1.0, []


def describe(handle: LogprobHandle) -> Logprob:
    token, logprob, _ = handle.resolve()
    return Logprob(token, chr(token), logprob)


SYNTAX = syntax_of(*TAGS, model_type="qwen3", tools=FORMATS["json_tools"])


def sequence(*, chats: bool = True, max_tokens: int = 1000, opening: str = "", **fields: Any) -> Sequence:
    if chats:
        request: Chat | Generate = Chat(messages=[Message(role="user", content="x")], tools=TOOLS, **fields)
        answer = OutputParser(SYNTAX, start_state(SYNTAX, opening), TOOLS, parses_calls=True)
    else:
        request, answer = Generate(prompt="x", **fields), None
    output = OutputProcessor(
        1,
        0,
        request,
        max_tokens=max_tokens,
        eos_token_ids={END},
        detokenizer=Letters(),
        answer=answer,
        stops=StringAutomaton(request.stop) if request.stop else None,
        format_logprob=describe,
    )
    return Sequence(1, request, 0, [1], output)


def run(row: Sequence, text: str, *, ends: bool = True) -> list[RunnerEvent]:
    outcomes: list[RunnerEvent] = []
    for token in [*map(ord, text), *([END] if ends else [])]:
        goes_on = row.append_token(token, None)
        outcomes += row.take_events()
        if not goes_on:
            break
    return outcomes


def shown(outcomes: Iterable[RunnerEvent], channel: str = "content") -> str:
    return "".join(o.text for o in outcomes if isinstance(o, TokenDelta) and o.channel == channel)


def last(outcomes: list[RunnerEvent]) -> TokenDelta:
    delta = outcomes[-1]
    assert isinstance(delta, TokenDelta)
    return delta


CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


@pytest.mark.parametrize(
    "text", ["a", "<think>a</think>b", "x<think></think>", CALL, f"a{CALL}b{CALL}", "<tool_call>no"]
)
def test_every_token_is_given_once(text: str) -> None:
    outcomes = run(sequence(), text)
    ids = [token for o in outcomes if isinstance(o, TokenDelta) for token in o.token_ids]
    assert ids == list(map(ord, text))
    assert sum(o.generated for o in outcomes if isinstance(o, TokenDelta)) == len(text) + 1, "the end counts"


def test_reasoning_and_content_are_separated() -> None:
    outcomes = run(sequence(), "<think>so</think>\n\nyes")
    assert (shown(outcomes, "reasoning"), shown(outcomes)) == ("so", "\n\nyes")
    assert sum(o.reasoning_tokens for o in outcomes if isinstance(o, TokenDelta)) == len("so</think>") + 1


def test_an_answer_that_starts_inside_reasoning_ends_it() -> None:
    outcomes = run(sequence(opening="<think>\n"), "so</think>yes")
    assert (shown(outcomes, "reasoning"), shown(outcomes)) == ("so", "yes")


def test_a_call_ends_the_turn_as_tool_calls() -> None:
    outcomes = run(sequence(), f"one moment{CALL}")
    assert shown(outcomes) == "one moment"
    calls = [o for o in outcomes if isinstance(o, ToolCallDelta)]
    assert calls[0].name == "f"
    assert "".join(call.arguments for call in calls) == '{"a": 1}'
    assert calls[-1].complete is True
    assert last(outcomes).finish_reason == "tool_calls"


def test_a_call_that_is_cut_off_comes_as_text() -> None:
    outcomes = run(sequence(max_tokens=30), CALL)
    assert last(outcomes).finish_reason == "length"
    assert shown(outcomes) == CALL[:30]
    calls = [o for o in outcomes if isinstance(o, ToolCallDelta)]
    assert not calls or calls[-1].complete is False


def test_without_parallel_calls_the_answer_ends_after_the_first() -> None:
    outcomes = run(sequence(parallel_tool_calls=False), CALL + CALL)
    assert [o.complete for o in outcomes if isinstance(o, ToolCallDelta)][-1] is True
    assert len({o.index for o in outcomes if isinstance(o, ToolCallDelta)}) == 1
    assert last(outcomes).finish_reason == "tool_calls"


def test_an_answer_that_must_call_ends_before_the_first_repeated_call() -> None:
    other = CALL.replace("1", "12")
    outcomes = run(sequence(tool_choice="required"), CALL + other + CALL + other)
    calls = [o for o in outcomes if isinstance(o, ToolCallDelta)]
    assert [o.index for o in calls if o.complete] == [0, 1]
    assert {o.index for o in calls} == {0, 1}, "nothing of the repeated call is sent"
    assert ["".join(o.arguments for o in calls if o.index == index) for index in (0, 1)] == ['{"a": 1}', '{"a": 12}']
    assert last(outcomes).finish_reason == "tool_calls"
    free = run(sequence(), CALL + CALL + CALL)
    assert [o.index for o in free if isinstance(o, ToolCallDelta) and o.complete] == [0, 1, 2]


def test_a_call_that_is_cut_off_while_it_repeats_another_comes_as_text() -> None:
    outcomes = run(sequence(tool_choice="required", max_tokens=len(CALL) + 30), CALL + CALL)
    assert [o.complete for o in outcomes if isinstance(o, ToolCallDelta) and o.index == 1][-1:] in ([], [False])
    assert last(outcomes).finish_reason == "length"
    assert shown(outcomes) == CALL[:30]


def test_an_answer_has_no_more_calls_than_a_message_may_have() -> None:
    outcomes = run(sequence(max_tokens=10**6), "".join(CALL.replace("1", str(n)) for n in range(TOOL_CALLS + 5)))
    assert len([o for o in outcomes if isinstance(o, ToolCallDelta) and o.complete]) == TOOL_CALLS
    assert last(outcomes).finish_reason == "tool_calls"


@pytest.mark.parametrize("chats", [True, False])
@pytest.mark.parametrize(("include", "text"), [(False, "one "), (True, "one stop")])
def test_a_stop_string_ends_the_content_and_is_shown_where_asked_for(chats: bool, include: bool, text: str) -> None:
    outcomes = run(sequence(chats=chats, stop=["stop"], include_stop=include), "one stop two")
    assert shown(outcomes) == text
    assert (last(outcomes).finish_reason, last(outcomes).stop) == ("stop", "stop")


def test_a_stop_string_ends_reasoning_too() -> None:
    outcomes = run(sequence(stop=["but"]), "<think>yes but no</think>maybe")
    assert shown(outcomes, "reasoning") == "yes "
    assert shown(outcomes) == ""


def test_a_stop_string_does_not_lie_across_channels() -> None:
    outcomes = run(sequence(stop=["ab"]), "<think>a</think>b")
    assert (shown(outcomes, "reasoning"), shown(outcomes)) == ("a", "b")


def test_a_stop_string_in_a_calls_arguments_does_not_end_it() -> None:
    outcomes = run(sequence(stop=['"a"']), CALL)
    assert last(outcomes).finish_reason == "tool_calls"


def test_a_cancel_returns_the_text_that_was_held_back() -> None:
    row = sequence(chats=False, stop=["stop"])
    run(row, "one st", ends=False)
    (delta,) = row.finish(None)
    assert isinstance(delta, TokenDelta)
    assert (delta.text, delta.finish_reason) == ("st", None)


def test_log_probabilities_go_with_their_tokens() -> None:
    row = sequence(logprobs=True)
    outcomes: list[RunnerEvent] = []
    for token in map(ord, "<think>a</think>b"):
        row.append_token(token, Resolved(token))
        outcomes += row.take_events()
    for outcome in outcomes:
        if isinstance(outcome, TokenDelta) and outcome.token_ids:
            assert [entry.token_id for entry in outcome.logprobs or []] == outcome.token_ids


def test_a_token_that_cannot_be_turned_into_text_fails_its_request_alone() -> None:
    row = sequence()
    assert not row.append_token(-1, None)
    (failed,) = row.take_events()
    assert isinstance(failed, Failed)
    assert "-1" in failed.error.message
