"""Everything a request can ask for, beside images: each row gets what it gets alone, and what it asked for."""

import json
import re
from typing import Any

import pytest

from lmwire_protocol import (
    Chat,
    ChoiceFormat,
    Generate,
    JsonObjectFormat,
    JsonSchemaFormat,
    LarkFormat,
    NamedTool,
    RegexFormat,
)
from lmwire_worker.generation.runner import GenerationRunner
from support.media.shown_images import image, shown
from support.models.talking_vision import TIME, TOOLS, WEATHER
from support.runners.batch_equivalence import check
from support.runners.generation_runners import Answer, chat

pytestmark = pytest.mark.slow

ONE, OTHER, TALL = image(1), image(2), image(3, 64, 128)
SAMPLED: dict[str, Any] = {"temperature": 0.9, "max_tokens": 20}
LONG: dict[str, Any] = SAMPLED | {"max_tokens": 80}
CALLING: dict[str, Any] = LONG | {"reasoning": "off", "tools": TOOLS}
DATE = {
    "type": "object",
    "properties": {"day": {"type": "integer", "minimum": 1, "maximum": 31}},
    "required": ["day"],
    "additionalProperties": False,
}

REQUESTS: dict[str, Chat | Generate] = {
    "text": chat("No image here.", **SAMPLED),
    "prompt": Generate(prompt="It was a", max_tokens=30, logprobs=True),
    "greedy": shown("What is on ", ONE, "?", max_tokens=30, reasoning="off"),
    "logprobs": shown(TALL, "Go on.", **SAMPLED, top_p=0.9, logprobs=True, top_logprobs=4),
    "required": shown(ONE, "Weather?", **CALLING, tool_choice="required", parallel_tool_calls=False),
    "named": shown(OTHER, "Time?", **CALLING, tool_choice=NamedTool(name=TIME.function.name)),
    "text with tools": chat("Weather?", **CALLING, tool_choice="required", parallel_tool_calls=False),
    "shown no tools": shown(ONE, "Weather?", max_tokens=20, tools=TOOLS, tool_choice="none"),
    "budget": shown(ONE, "Think about ", TALL, **SAMPLED, reasoning="on", reasoning_budget=9),
    "no budget": shown(OTHER, "Think!", max_tokens=25, reasoning="on"),
    "thought, then schema": shown(
        ONE, "Day?", **LONG, reasoning="on", reasoning_budget=6, format=JsonSchemaFormat(schema=DATE)
    ),
    "schema": shown(OTHER, "Day?", **LONG, reasoning="off", format=JsonSchemaFormat(schema=DATE), logprobs=True),
    "object": shown(TALL, "As data.", **SAMPLED, reasoning="off", format=JsonObjectFormat()),
    "regex": shown("A word for ", ONE, **SAMPLED, reasoning="off", format=RegexFormat(pattern="[a-f]{3}-[0-9]{2}")),
    "lark": shown(ONE, OTHER, max_tokens=40, reasoning="off", format=LarkFormat(grammar='start: "(" /[a-z]{2,5}/ ")"')),
    "choice": shown(OTHER, "Yes or no?", **SAMPLED, reasoning="off", format=ChoiceFormat(choices=["yes", "no"])),
    "penalties": shown(ONE, "On?", **SAMPLED, repetition_penalty=1.3, presence_penalty=0.5, frequency_penalty=0.4),
    "filters": shown(OTHER, "On?", **SAMPLED, top_k=20, min_p=0.01, xtc_probability=0.5, xtc_threshold=0.01),
    "choices": shown(TALL, "Well?", **SAMPLED, n=3, stop=["a", "e"], include_stop=True),
    "prefix": shown(TALL, "Well?", **SAMPLED, prefix="It is", ignore_eos=True),
}


@pytest.fixture(scope="module")
def answers(talker: GenerationRunner) -> dict[str, Answer]:
    talker.clear_cache()
    return dict(zip(REQUESTS, check(talker, list(REQUESTS.values())), strict=True))


def test_mixed_requests_are_the_same_alone_and_only_some_have_logprobs(answers: dict[str, Answer]) -> None:
    assert {name for name, answer in answers.items() if answer.logprobs} == {"prompt", "logprobs", "schema"}
    assert all(len(entry.top) == 4 for entry in answers["logprobs"].logprobs)


def test_prompts_of_different_lengths_are_computed_together(talker: GenerationRunner) -> None:
    assert talker.may_pad()


def test_text_comes_as_it_is_written(answers: dict[str, Answer]) -> None:
    assert len([part for part in answers["greedy"].parts if part]) > 10


def test_a_call_that_is_required_is_made_of_a_tool_that_was_given(answers: dict[str, Answer]) -> None:
    for name in ("required", "text with tools"):
        (call,) = answers[name].calls
        assert (call.complete, answers[name].finish_reason, answers[name].text.strip()) == (True, "tool_calls", "")
        assert call.name in {tool.function.name for tool in TOOLS}
        if call.name == WEATHER.function.name:
            assert json.loads(call.arguments)["city"] in ("Rome", "Paris")


def test_a_tool_that_is_named_is_the_one_that_is_called(answers: dict[str, Answer]) -> None:
    (call,) = answers["named"].calls
    assert (call.name, json.loads(call.arguments), answers["named"].finish_reason) == ("get_time", {}, "tool_calls")
    assert not answers["shown no tools"].calls


def test_reasoning_has_a_channel_of_its_own_and_ends_with_its_budget(answers: dict[str, Answer]) -> None:
    budget = answers["budget"]
    assert 9 <= budget.reasoning_tokens <= 11, "the markers count"
    assert budget.reasoning
    assert budget.text
    assert (answers["no budget"].reasoning_tokens, answers["no budget"].text) == (25, "")
    for name in ("greedy", "schema", "choice"):
        assert (answers[name].reasoning_tokens, answers[name].reasoning) == (0, "")


def test_answers_have_the_format_that_was_asked_for(answers: dict[str, Answer]) -> None:
    thoughtful = answers["thought, then schema"]
    assert 6 <= thoughtful.reasoning_tokens <= 8
    for answer in (thoughtful, answers["schema"]):
        assert 1 <= json.loads(answer.text)["day"] <= 31
    assert re.fullmatch("[a-f]{3}-[0-9]{2}", answers["regex"].text)
    assert re.fullmatch(r"\([a-z]{2,5}\)", answers["lark"].text)
    assert answers["choice"].text in ("yes", "no")
    assert answers["object"].text.startswith("{")
