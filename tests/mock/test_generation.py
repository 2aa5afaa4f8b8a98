"""The mock's runner by itself: choices, channels, log-probabilities, and how an answer ends."""

from typing import Any

import pytest

from lmwire_protocol import ContextFile, Generate
from lmwire_protocol.limits import EFFORT_BUDGETS
from lmwire_worker.engine.interface import Failed, RunnerEvent, TokenDelta
from lmwire_worker.mock.replies import Answer, Failure, Reply
from lmwire_worker.mock.scenario import Rule
from support.runners.mock_runners import KEY, answer, chat, gather, play, runner

Json = dict[str, Any]

# Choices.


def test_each_choice_is_an_answer_with_its_own_end() -> None:
    reply = Reply(choices=[Answer(text="one two"), Answer(text="uno", finish_reason="length")])
    outcomes = play(runner(Rule(reply)), Generate(prompt="x", n=3))
    result = [gather(outcomes, choice) for choice in range(3)]
    assert [choice.content for choice in result] == ["one two", "uno", "one two"]
    assert [choice.finish_reason for choice in result] == ["stop", "length", "stop"]


def test_choices_go_forward_side_by_side() -> None:
    outcomes = play(runner(), Generate(prompt="a b", n=2))
    deltas = [outcome for outcome in outcomes if isinstance(outcome, TokenDelta)]
    assert [(delta.choice, delta.text) for delta in deltas] == [(0, "a "), (1, "a "), (0, "b"), (1, "b")]


def test_a_choice_that_a_stop_string_ends_lets_the_others_go_on() -> None:
    reply = Reply(choices=[Answer(text="a stop b"), Answer(text="a b c")])
    outcomes = play(runner(Rule(reply)), Generate(prompt="x", n=2, stop=["stop"]))
    first, second = gather(outcomes, 0), gather(outcomes, 1)
    assert (first.content, first.deltas[-1].stop) == ("a ", "stop")
    assert (second.content, second.deltas[-1].stop) == ("a b c", None)


def test_the_runner_accepts_requests_again_when_the_last_choice_has_ended() -> None:
    mock = runner()
    for _ in range(2):
        play(mock, Generate(prompt="a b", n=2))


def test_a_scripted_error_comes_after_all_choices() -> None:
    mock = runner(Rule(Reply(choices=[Answer(text="a"), Answer(text="a b c")], error=Failure("engine_error"))))
    mock.add(KEY, Generate(prompt="x", n=2), 1)
    outcomes: list[RunnerEvent] = []
    while not (outcomes and isinstance(outcomes[-1], Failed)):
        outcomes += mock.step()
    assert [gather(outcomes, choice).content for choice in range(2)] == ["a", "a b c"]


# Channels.


def test_reasoning_comes_first_and_is_counted() -> None:
    result = answer(Reply(reasoning="Let me think.", text="Four."))
    assert (result.reasoning, result.content) == ("Let me think.", "Four.")
    assert [delta.reasoning_tokens for delta in result.deltas] == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("fields", "reasoning_part"),
    [
        ({}, "x y z"),
        ({"reasoning": "off"}, ""),
        ({"reasoning_budget": 2}, "x y "),
        ({"reasoning_budget": 0}, ""),
        ({"reasoning_effort": "high", "reasoning_budget": 1}, "x "),
    ],
)
def test_reasoning_follows_the_request(fields: Json, reasoning_part: str) -> None:
    result = answer(Reply(reasoning="x y z", text="done"), chat(**fields))
    assert (result.reasoning, result.content) == (reasoning_part, "done")


def test_an_effort_is_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORT_BUDGETS, "minimal", 2)
    found = answer(Reply(reasoning="x y z", text="done"), chat(reasoning_effort="minimal"))
    assert found.reasoning == "x y "


def test_forced_reasoning_repeats_the_prompt() -> None:
    result = answer(Reply(), chat("to be", reasoning="on"))
    assert (result.reasoning, result.content) == ("to be", "to be")


def test_generate_returns_content_without_reasoning() -> None:
    assert answer(Reply(reasoning="Hm. ", text="Four."), Generate(prompt="x")).content == "Hm. Four."


def test_a_stop_string_is_found_in_reasoning_and_never_across_its_end() -> None:
    assert answer(Reply(reasoning="a b c"), chat(stop=["b "])).reasoning == "a "
    result = answer(Reply(reasoning="end", text="less"), chat(stop=["endless"]))
    assert (result.reasoning, result.content) == ("end", "less")


# Log-probabilities.


def test_every_token_is_certain_and_names_as_many_others_as_asked_for() -> None:
    result = answer(Reply(text="a b"), Generate(prompt="x", logprobs=True, top_logprobs=3))
    logprobs = [logprob for delta in result.deltas for logprob in delta.logprobs or []]
    assert [(logprob.token_id, logprob.token, logprob.logprob) for logprob in logprobs] == [(0, "a ", 0), (1, "b", 0)]
    assert [[(other.token, other.logprob) for other in logprob.top] for logprob in logprobs] == [
        [("a ", 0.0), ("b", -1000.0), ("<2>", -2000.0)],
        [("b", 0.0), ("<2>", -1000.0), ("<3>", -2000.0)],
    ]


@pytest.mark.parametrize("top", [0, 1, 20])
def test_top_logprobs_has_the_requested_number_of_tokens(top: int) -> None:
    result = answer(Reply(), Generate(prompt="x", logprobs=True, top_logprobs=top))
    assert [len(logprob.top) for delta in result.deltas for logprob in delta.logprobs or []] == [top]


# How long, and to what end.


@pytest.mark.parametrize(
    ("fields", "text", "reason"),
    [
        ({"min_tokens": 5}, "x y x y x ", "stop"),
        ({"min_tokens": 1}, "x y ", "stop"),
        ({"ignore_eos": True, "max_tokens": 3}, "x y x ", "length"),
        ({"ignore_eos": True, "stop": ["y x y"]}, "x ", "stop"),
        ({"stop": ["y"], "include_stop": True}, "x y", "stop"),
        ({"max_tokens": 0}, "", "length"),
    ],
)
def test_an_answer_is_as_long_as_it_has_to_be(fields: Json, text: str, reason: str) -> None:
    result = answer(Reply(text="x y "), chat(**fields))
    assert (result.content, result.finish_reason) == (text, reason)


def test_an_empty_answer_that_may_not_end_echoes() -> None:
    assert answer(Reply(tokens=[]), chat("a b ", min_tokens=3)).content == "a b a "


def test_sampling_options_do_not_change_a_certain_token() -> None:
    settings: Json = {
        "temperature": 100,
        "top_p": 0.1,
        "xtc_probability": 1,
        "repetition_penalty": 10,
        "presence_penalty": 2,
        "frequency_penalty": 2,
        "logit_bias": {"0": -100},
        "seed": 3,
    }
    assert answer(Reply(), chat("a a a", **settings)).content == "a a a"


# The prompt.


def test_the_words_of_a_prompt_are_certain_except_for_the_first() -> None:
    outcomes = play(runner(), Generate(prompt="a b c", prompt_logprobs=True, logprobs=True, top_logprobs=2))
    scored = [
        logprob for outcome in outcomes if isinstance(outcome, TokenDelta) for logprob in outcome.prompt_logprobs or ()
    ]
    assert [(logprob.token, logprob.logprob) for logprob in scored] == [("a ", None), ("b ", 0.0), ("c", 0.0)]
    assert [[top.logprob for top in logprob.top] for logprob in scored] == [[], [0.0, -1000.0], [0.0, -1000.0]]


def test_a_gap_lies_between_the_words_of_the_prompt_and_of_the_suffix() -> None:
    files = [ContextFile(name="f", text="x y")]
    mock = runner()
    admitted = mock.add(KEY, Generate(prompt="a b", suffix="c", context_files=files), 1)
    assert admitted.prompt_tokens == 6
    assert gather(play(runner(), Generate(prompt="a b", suffix="c")), 0).content == "a b"
