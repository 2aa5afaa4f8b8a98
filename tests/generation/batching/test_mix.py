"""Everything a request can ask for, in one batch: each row gets what it gets alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from lmwire_protocol import (
    Chat,
    ChoiceFormat,
    Function,
    Generate,
    JsonObjectFormat,
    JsonSchemaFormat,
    LarkFormat,
    NamedTool,
    RegexFormat,
    Tool,
)
from lmwire_worker.generation.runner import GenerationRunner
from support.runners.batch_equivalence import check
from support.runners.generation_runners import EACH_FAMILY, RunnerOf, chat, open_runner

pytestmark = pytest.mark.slow

SAMPLED: dict[str, Any] = {"temperature": 0.9, "max_tokens": 16}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Paris"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
WEATHER = Tool(
    function=Function(
        name="get_weather",
        description="Get the current weather in a city.",
        parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    )
)
NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}
TOOLS = [
    Tool(function=Function(name="get_weather", description="The weather of a city.", parameters=SCHEMA)),
    Tool(function=Function(name="get_time", description="The time of day.", parameters=NOTHING)),
]

ANYWHERE: list[Generate | Chat] = [
    Generate(prompt="one", **SAMPLED, top_p=0.8, logprobs=True, top_logprobs=5),
    Generate(prompt="two two", **SAMPLED, n=3, xtc_probability=0.5, xtc_threshold=0.01),
    Generate(prompt="three", **SAMPLED, repetition_penalty=1.3, presence_penalty=0.4, frequency_penalty=-0.3),
    Generate(prompt="four", **SAMPLED, logit_bias={65: 5.0, 66: -100.0}, penalty_window=0, frequency_penalty=0.5),
    Generate(prompt="five", **SAMPLED, min_tokens=12, stop=["a", "\n"], include_stop=True),
    Generate(prompt="six", **SAMPLED, ignore_eos=True, top_k=20, min_p=0.01),
    Generate(prompt="seven", **SAMPLED, format=RegexFormat(pattern="[a-f]{4,8}(-[0-9]{2}){2}")),
    Generate(prompt="eight", **SAMPLED, format=JsonSchemaFormat(schema=SCHEMA), n=2),
    Generate(prompt="nine", max_tokens=16, format=ChoiceFormat(choices=["yes", "no", "no idea"]), logprobs=True),
    Generate(prompt="ten", **SAMPLED, format=LarkFormat(grammar='start: "(" WORD ")"\nWORD: /[a-z]{2,9}/')),
    chat("eleven", **SAMPLED, format=JsonObjectFormat()),
    chat("twelve", max_tokens=16),
    chat("thirteen", **SAMPLED, prefix="Well,", n=2),
    Generate(prompt=[65, 66, 67], max_tokens=17, logprobs=True, top_logprobs=20),
    Generate(prompt="x" * 200, **SAMPLED),
    Generate(prompt="fifteen", max_tokens=0),
    Generate(prompt="on and on and on", **SAMPLED, dry_multiplier=1.5, dry_allowed_length=1, n=2),
    Generate(prompt="sixteen", **SAMPLED, banned_strings=["a", "e", "t", "1", " "], n=2),
]
"""Eighteen that any model can be asked."""

ON_THE_BUILT_IN_MODEL: list[Generate | Chat] = [
    chat("What is 12 + 30?", max_tokens=120, reasoning="on"),
    chat("What is 12 + 30?", max_tokens=30, reasoning="off"),
    chat("What is 7 * 8?", max_tokens=120, reasoning="on", reasoning_budget=4, temperature=0.8),
    chat("What is the weather in Rome?", max_tokens=120, tools=[WEATHER]),
    chat("Weather in Rome for 3 days?", max_tokens=120, tools=TOOLS, tool_choice="required", temperature=1.2),
    chat(
        "Hello!", temperature=0.9, max_tokens=24, tools=TOOLS, tool_choice=NamedTool(name="get_time"), reasoning="off"
    ),
    chat("Hello!", max_tokens=30, tools=TOOLS, tool_choice="none"),
    chat(
        "Hello!",
        max_tokens=120,
        format=JsonSchemaFormat(schema=SCHEMA),
        reasoning="on",
        reasoning_budget=12,
        temperature=1.0,
    ),
    chat(
        "Hello!",
        max_tokens=80,
        format=JsonSchemaFormat(schema=SCHEMA),
        tools=TOOLS,
        reasoning="off",
        n=3,
        temperature=1.0,
    ),
    chat("Say a word.", max_tokens=30, logprobs=True, top_logprobs=3, stop=["."], temperature=0.7),
]


@pytest.fixture(scope="module")
def built_in() -> Iterator[GenerationRunner]:
    yield open_runner(Path("builtin:tiny"))


@pytest.mark.parametrize("family", EACH_FAMILY)
def test_eighteen_different_requests_get_what_they_get_alone(family: str, runner_of: RunnerOf) -> None:
    check(runner_of(family), ANYWHERE)


@pytest.mark.parametrize("family", EACH_FAMILY)
def test_rows_of_one_length_get_what_they_get_alone(family: str, runner_of: RunnerOf) -> None:
    prompts = [[(7 * row + 3 * place) % 90 + 5 for place in range(40)] for row in range(6)]
    ends = (20, 20, 5, 20, 11, 20)
    check(
        runner_of(family), [Generate(prompt=prompt, max_tokens=end) for prompt, end in zip(prompts, ends, strict=True)]
    )


def test_eighteen_requests_are_the_same_alone_with_the_arithmetic_of_a_gpu(
    runner_of: RunnerOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mx, "default_device", lambda: mx.gpu)
    check(runner_of("llama"), ANYWHERE)


def test_chats_with_reasoning_tools_and_formats_are_the_same_alone(built_in: GenerationRunner) -> None:
    answers = check(built_in, ON_THE_BUILT_IN_MODEL)
    thinks, does_not, cut_short, calls, must_call, named, may_not, schema = answers[:8]
    assert thinks.reasoning
    assert thinks.reasoning_tokens > 0
    assert not does_not.reasoning
    assert 4 <= cut_short.reasoning_tokens <= 6, "the markers count"
    assert [call.name for call in calls.calls] == ["get_weather"]
    assert calls.finish_reason == "tool_calls"
    assert json.loads(calls.calls[0].arguments) == {"city": "Rome"}
    assert must_call.calls
    assert all(call.complete for call in must_call.calls)
    assert [call.name for call in named.calls][:1] == ["get_time"]
    assert not may_not.calls
    assert set(json.loads(schema.text)) == {"city", "days"}
