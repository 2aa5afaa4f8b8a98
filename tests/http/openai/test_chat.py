"""Chat completions with OpenAI's own client, against the model that is built in."""

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import BaseModel
from tokenizers import Tokenizer

import lmwire_worker
from support.http.http_server import Server

pytestmark = pytest.mark.slow

TINY = "builtin:tiny"
WHO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Who are you?"}]
SUM: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is 17 + 25?"}]
PARIS: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is the weather in Paris?"}]
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Person(BaseModel):
    """The schema of the answer."""

    name: str
    age: int


@pytest.fixture(scope="module")
def client(tiny_server: Server) -> OpenAI:
    return OpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0)


def say(client: OpenAI, messages: list[ChatCompletionMessageParam], **options: Any) -> Any:
    options = {"temperature": 0, **options}
    return client.chat.completions.create(model=TINY, messages=messages, **options)


def test_a_completion_has_its_text_its_end_and_its_usage(client: OpenAI) -> None:
    answer = say(client, WHO)
    [choice] = answer.choices
    assert choice.message.role == "assistant"
    assert "lmwire" in choice.message.content
    assert (choice.finish_reason, choice.index, answer.model) == ("stop", 0, TINY)
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-")
    assert answer.usage.prompt_tokens == 13
    assert answer.usage.total_tokens == 13 + answer.usage.completion_tokens


def test_streamed_text_is_the_text_of_the_whole_answer(client: OpenAI) -> None:
    whole = say(client, WHO)
    *chunks, last = list(say(client, WHO, stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    assert [chunk.usage for chunk in chunks] == [None] * len(chunks)
    assert last.choices == []
    assert last.usage.completion_tokens == whole.usage.completion_tokens
    cached = last.usage.prompt_tokens_details.cached_tokens
    assert cached in (whole.usage.prompt_tokens - 1, 0), "a hit now and then is computed anew, as a check"
    assert {chunk.id for chunk in chunks} == {last.id}


def test_tasks_are_answered_beside_each_other(tiny_server: Server) -> None:
    async def count(client: AsyncOpenAI, end: int) -> str:
        asked = f"Count from 1 to {end}."
        stream = await client.chat.completions.create(
            model=TINY, messages=[{"role": "user", "content": asked}], temperature=0, stream=True
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def all_of_them() -> list[str]:
        async with AsyncOpenAI(base_url=f"{tiny_server.url}/v1", api_key="any") as client:
            return await asyncio.gather(*(count(client, end) for end in range(3, 9)))

    for end, text in zip(range(3, 9), asyncio.run(all_of_them()), strict=True):
        assert [int(word) for word in text.replace(",", " ").replace(".", " ").split()] == list(range(1, end + 1))


def test_reasoning_is_separate_from_the_answer(client: OpenAI) -> None:
    answer = say(client, SUM, reasoning_effort="high")
    message = answer.choices[0].message
    assert "7 + 5 = 12" in message.reasoning_content
    assert "42" in message.content and "12" not in message.content
    assert answer.usage.completion_tokens_details.reasoning_tokens > 5
    streamed = [chunk.choices[0].delta for chunk in say(client, SUM, reasoning_effort="high", stream=True)]
    assert "".join(getattr(delta, "reasoning_content", "") for delta in streamed) == message.reasoning_content
    assert "".join(delta.content or "" for delta in streamed) == message.content


def test_without_effort_there_is_no_reasoning(client: OpenAI) -> None:
    answer = say(client, SUM, reasoning_effort="none")
    assert not hasattr(answer.choices[0].message, "reasoning_content")
    assert "42" in answer.choices[0].message.content
    same = say(client, SUM, extra_body={"chat_template_kwargs": {"enable_thinking": False}})
    assert same.choices[0].message == answer.choices[0].message


def test_a_stray_end_of_reasoning_marker_is_not_content_over_http(client: OpenAI) -> None:
    folder = Path(lmwire_worker.__file__).parent / "builtin" / "tiny"
    end = Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id("</think>")
    options: Any = {"reasoning_effort": "none", "logit_bias": {str(end): 100}, "max_tokens": 5}
    answer = say(client, WHO, **options)
    assert (answer.choices[0].message.content, answer.usage.completion_tokens) == ("", 5)
    chunks = say(client, WHO, stream=True, **options)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == ""


def test_a_tool_is_called_and_its_result_is_used(client: OpenAI) -> None:
    answer = say(client, PARIS, tools=[WEATHER])
    message = answer.choices[0].message
    assert (message.content, answer.choices[0].finish_reason) == (None, "tool_calls")
    [call] = message.tool_calls
    assert (call.type, call.function.name) == ("function", "get_weather")
    assert call.id.startswith("call_")
    assert json.loads(call.function.arguments) == {"city": "Paris"}
    result = {"role": "tool", "tool_call_id": call.id, "content": "sunny, 21 degrees"}
    after = say(client, [*PARIS, message.model_dump(), cast(Any, result)], tools=[WEATHER])
    assert "sunny" in after.choices[0].message.content


def test_parallel_calls_are_distinguished_in_a_stream(client: OpenAI) -> None:
    both: list[ChatCompletionMessageParam] = [
        {"role": "user", "content": "What is the weather in Rome and in Oslo?"},
    ]
    with client.chat.completions.stream(model=TINY, messages=both, tools=[WEATHER], temperature=0) as stream:
        answer = stream.get_final_completion()
    calls = answer.choices[0].message.tool_calls or []
    assert [json.loads(call.function.arguments)["city"] for call in calls] == ["Rome", "Oslo"]
    assert len({call.id for call in calls}) == 2
    assert answer.choices[0].finish_reason == "tool_calls"
    one = say(client, both, tools=[WEATHER], parallel_tool_calls=False)
    assert len(one.choices[0].message.tool_calls) == 1


def test_a_tool_can_be_required_or_forbidden(client: OpenAI) -> None:
    named = {"type": "function", "function": {"name": "get_weather"}}
    message = say(client, PARIS, tools=[WEATHER], tool_choice=named).choices[0].message
    assert [call.function.name for call in message.tool_calls] == ["get_weather"]
    assert say(client, PARIS, tools=[WEATHER], tool_choice="none").choices[0].message.tool_calls is None


@pytest.mark.filterwarnings("ignore:Pydantic serializer")  # the client's, of what it has parsed itself
def test_an_answer_is_parsed_into_the_model_that_describes_it(client: OpenAI) -> None:
    answer = client.chat.completions.parse(
        model=TINY,
        messages=[{"role": "user", "content": "Ada is 36 years old. Write JSON with name and age."}],
        response_format=Person,
        temperature=0,
    )
    message = answer.choices[0].message
    assert message.parsed == Person(name="Ada", age=36)
    turns: Any = [{"role": "user", "content": "Who is it?"}, message, *WHO]
    assert say(client, turns, max_tokens=1).usage.completion_tokens == 1


def test_a_stream_is_parsed_into_the_model_that_describes_it(tiny_server: Server) -> None:
    async def parsed() -> Person | None:
        async with (
            AsyncOpenAI(base_url=f"{tiny_server.url}/v1", api_key="any") as client,
            client.chat.completions.stream(
                model=TINY,
                messages=[{"role": "user", "content": "Bob is 52 years old. Write JSON with name and age."}],
                response_format=Person,
                temperature=0,
            ) as stream,
        ):
            return (await stream.get_final_completion()).choices[0].message.parsed

    person = asyncio.run(parsed())
    assert person is not None and person.age == 52


def test_any_object_is_json_where_only_that_is_asked(client: OpenAI) -> None:
    wanted = {"type": "json_object"}
    answer = say(client, WHO, response_format=wanted, reasoning_effort="none", max_tokens=40)
    assert answer.choices[0].message.content.startswith("{")


def test_a_seed_gives_the_same_answers_again_each_of_n_its_own(client: OpenAI) -> None:
    def texts(seed: int) -> list[str]:
        answer = say(client, WHO, n=3, seed=seed, max_tokens=20, temperature=2)
        assert [choice.index for choice in answer.choices] == [0, 1, 2]
        return [choice.message.content or "" for choice in answer.choices]

    assert texts(-7) == texts(-7)
    assert len(set(texts(-7))) > 1


def test_top_log_probabilities_need_no_other_field_as_in_responses(client: OpenAI) -> None:
    alone = say(client, WHO, top_logprobs=2, max_tokens=3).choices[0].logprobs
    assert alone == say(client, WHO, logprobs=True, top_logprobs=2, max_tokens=3).choices[0].logprobs
    assert [len(token.top_logprobs) for token in alone.content] == [2, 2, 2]
    assert say(client, WHO, top_logprobs=0, max_tokens=3).choices[0].logprobs is None


def test_log_probabilities_come_for_each_token_of_the_text(client: OpenAI) -> None:
    whole = say(client, WHO, logprobs=True, top_logprobs=2, max_tokens=6).choices[0]
    tokens = whole.logprobs.content
    assert bytes(byte for token in tokens for byte in token.bytes).decode() == whole.message.content
    assert all(token.logprob <= 0 and len(token.top_logprobs) == 2 for token in tokens)
    assert tokens[0].top_logprobs[0].token == tokens[0].token
    streamed = [
        token
        for chunk in say(client, WHO, logprobs=True, top_logprobs=2, max_tokens=6, stream=True)
        if chunk.choices[0].logprobs
        for token in chunk.choices[0].logprobs.content
    ]
    assert [token.token for token in streamed] == [token.token for token in tokens]


def test_reasoning_has_no_log_probabilities(client: OpenAI) -> None:
    whole = say(client, SUM, reasoning_effort="low", logprobs=True).choices[0]
    assert "".join(token.token for token in whole.logprobs.content).strip() == whole.message.content.strip()


def test_a_bias_forbids_a_token(client: OpenAI) -> None:
    [first] = say(client, WHO, logprobs=True, max_tokens=1).choices[0].logprobs.content
    assert first.token == "I"
    other = say(client, WHO, logit_bias={"40": -100}, max_tokens=1)
    assert not other.choices[0].message.content.startswith("I")


def test_stop_strings_and_limits_end_an_answer(client: OpenAI) -> None:
    assert say(client, WHO, stop=" tiny").choices[0].message.content == "I am the"
    limited = say(client, WHO, max_completion_tokens=2).choices[0]
    assert (limited.message.content, limited.finish_reason) == ("I am", "length")
    assert say(client, WHO, max_tokens=2).choices[0].finish_reason == "length"


def test_what_is_harmless_changes_nothing(client: OpenAI) -> None:
    harmless = {
        "user": "ada",
        "metadata": {"run": "7"},
        "store": False,
        "service_tier": "auto",
        "safety_identifier": "a",
        "prompt_cache_key": "b",
        "modalities": ["text"],
        "verbosity": "medium",
        "logit_bias": None,
        "tools": None,
    }
    answer = say(client, cast(Any, [{**WHO[0], "name": "Ada"}]), **harmless)
    assert answer.choices[0].message.content == say(client, WHO).choices[0].message.content


def test_options_of_lmwire_are_taken_beside_those_of_the_api(client: OpenAI) -> None:
    answer = say(client, WHO, extra_body={"prefix": "I am the tiny", "top_k": 1, "cache": "off"}, max_tokens=2)
    assert answer.choices[0].message.content.startswith(" model")
    choice = {"type": "choice", "choices": ["yes", "no"]}
    chosen = say(client, WHO, reasoning_effort="none", extra_body={"format": choice})
    assert chosen.choices[0].message.content in {"yes", "no"}


def test_a_model_that_is_not_there_is_not_found(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="nonesuch"):
        client.chat.completions.create(model="nonesuch", messages=WHO)
