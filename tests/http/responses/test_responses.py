"""Responses with OpenAI's own client: whole, continued, called, parsed, kept and forgotten."""

import asyncio
import json
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from support.http.http_server import Server

MOCK = "mock"
TINY = "builtin:tiny"
WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}
SCRIPTED_WEATHER: Any = {**WEATHER, "name": "weather"}


class Person(BaseModel):
    """The schema of the answer."""

    name: str
    age: int


@pytest.fixture(scope="module")
def tiny(tiny_server: Server) -> OpenAI:
    return OpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0)


@pytest.fixture(scope="module")
def scripted(scripted_server: Server) -> OpenAI:
    return OpenAI(base_url=f"{scripted_server.url}/v1", api_key="any", max_retries=0)


def ask(client: OpenAI, input: Any, **options: Any) -> Any:
    model = MOCK if "model" not in options else options.pop("model")
    return client.responses.create(model=model, input=input, **options)


def ask_tiny(client: OpenAI, input: Any, **options: Any) -> Any:
    return ask(client, input, **{"model": TINY, "temperature": 0, **options})


@pytest.mark.slow
def test_a_response_has_its_text_its_status_and_its_usage(tiny: OpenAI) -> None:
    response = ask_tiny(tiny, "Who are you?")
    assert "lmwire" in response.output_text
    assert (response.object, response.status, response.model) == ("response", "completed", TINY)
    assert response.id.startswith("resp_") and response.completed_at >= response.created_at
    [message] = response.output
    assert (message.type, message.role, message.status) == ("message", "assistant", "completed")
    assert response.usage.input_tokens == 13
    assert response.usage.total_tokens == 13 + response.usage.output_tokens


@pytest.mark.slow
def test_tasks_get_the_same_responses(tiny_server: Server) -> None:
    async def texts() -> list[str]:
        async with AsyncOpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0) as client:
            calls = [client.responses.create(model=TINY, input="Who are you?", temperature=0) for _ in range(3)]
            return [response.output_text for response in await asyncio.gather(*calls)]

    first, *others = asyncio.run(texts())
    assert first and others == [first, first]


def test_a_response_repeats_the_request(scripted: OpenAI) -> None:
    response = ask(
        scripted,
        "hello",
        instructions="Be brief.",
        max_output_tokens=5,
        metadata={"topic": "greetings"},
        tools=[SCRIPTED_WEATHER],
        tool_choice="none",
        text={"verbosity": "low"},
        reasoning={"effort": "low"},
        truncation="auto",
        top_p=0.5,
        user="ada",
    )
    assert (response.instructions, response.max_output_tokens, response.user) == ("Be brief.", 5, "ada")
    assert (response.metadata, response.truncation, response.top_p) == ({"topic": "greetings"}, "auto", 0.5)
    assert (response.tool_choice, response.tools[0].name, response.text.verbosity) == ("none", "weather", "low")
    assert (response.reasoning.effort, response.temperature, response.parallel_tool_calls) == ("low", 1.0, True)


@pytest.mark.slow
def test_a_response_goes_on_from_an_earlier_one(tiny: OpenAI) -> None:
    first = ask_tiny(tiny, "My name is Ada.")
    second = ask_tiny(tiny, "What is my name?", previous_response_id=first.id)
    assert "Ada" in second.output_text
    assert second.previous_response_id == first.id
    alone = ask_tiny(tiny, "What is my name?")
    assert second.usage.input_tokens > alone.usage.input_tokens


def test_instructions_are_not_carried_over(scripted: OpenAI) -> None:
    first = ask(scripted, "hello", instructions="these are five more words")
    continued = ask(scripted, "hello", previous_response_id=first.id)
    assert continued.instructions is None
    listed = scripted.responses.input_items.list(continued.id, order="asc").data
    assert [getattr(item, "role", None) for item in listed] == ["user", "assistant", "user"]


@pytest.mark.slow
def test_the_model_calls_a_function_and_states_its_result(tiny: OpenAI) -> None:
    asked = ask_tiny(tiny, "What is the weather in Paris?", tools=[WEATHER])
    [call] = [item for item in asked.output if item.type == "function_call"]
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Paris"})
    assert call.call_id.startswith("call_")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "rain, 9 degrees"}
    answered = ask_tiny(tiny, [result], tools=[WEATHER], previous_response_id=asked.id)
    assert "rain" in answered.output_text
    spelt_out = [{"role": "user", "content": "What is the weather in Paris?"}, *asked.output, result]
    assert ask_tiny(tiny, spelt_out, tools=[WEATHER]).output_text == answered.output_text


@pytest.mark.slow
def test_an_item_of_an_earlier_response_may_be_named_by_its_id(tiny: OpenAI) -> None:
    asked = ask_tiny(tiny, "What is the weather in Paris?", tools=[WEATHER])
    [call] = [item for item in asked.output if item.type == "function_call"]
    items = [
        {"role": "user", "content": "What is the weather in Paris?"},
        {"type": "item_reference", "id": call.id},
        {"type": "function_call_output", "call_id": call.call_id, "output": "rain, 9 degrees"},
    ]
    assert "rain" in ask_tiny(tiny, items, tools=[WEATHER]).output_text
    with pytest.raises(openai.BadRequestError) as refused:
        ask_tiny(tiny, [{"id": "msg_unknown"}])
    assert refused.value.param == "input[0].id"


def test_reasoning_texts_and_calls_are_items_in_their_order(scripted: OpenAI) -> None:
    reasoning_item, text, call = ask(scripted, "weather in Rome", tools=[SCRIPTED_WEATHER]).output
    assert (reasoning_item.type, reasoning_item.content[0].text, reasoning_item.summary) == (
        "reasoning",
        "I look it up.",
        [],
    )
    assert (text.type, text.content[0].text) == ("message", "One moment.")
    assert (call.type, call.call_id, call.arguments) == ("function_call", "call_rome", '{"city":"Rome"}')


def test_an_invalid_call_is_text_in_a_response(scripted: OpenAI) -> None:
    response = ask(scripted, "weather broken", tools=[SCRIPTED_WEATHER])
    assert [item.type for item in response.output] == ["message"]
    assert response.output_text.startswith("Well:") and "{city" in response.output_text


@pytest.mark.parametrize(
    ("options", "answered"),
    [
        ({"tool_choice": "required", "parallel_tool_calls": False}, "required, one, may reason"),
        ({"tool_choice": "required"}, "required, may reason"),
        ({"tool_choice": {"type": "function", "name": "weather"}}, "by name, may reason"),
        ({"parallel_tool_calls": False}, "one"),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "required",
                    "tools": [{"type": "function", "name": "weather"}],
                }
            },
            "required, may reason",
        ),
    ],
)
def test_what_is_said_of_tools_reaches_the_worker(scripted: OpenAI, options: Any, answered: str) -> None:
    response = ask(scripted, "options", tools=[SCRIPTED_WEATHER], **options)
    assert [json.loads(item.arguments) for item in response.output] == [{"city": answered}]


@pytest.mark.parametrize(
    ("options", "answered"),
    [
        ({}, "defaults"),
        ({"reasoning": {"effort": "none"}}, "off"),
        ({"reasoning": {"effort": "low"}}, "on, low"),
        ({"reasoning": {"effort": "default"}}, "on, no effort"),
        ({"reasoning": {"effort": "high"}, "extra_body": {"reasoning_budget": 2000}}, "on, 2000"),
        ({"temperature": 0.5, "top_p": 0.9, "extra_body": {"top_k": 20, "seed": 7, "min_p": 0.1}}, "sampled"),
        ({"truncation": "auto"}, "cut on the left"),
        ({"truncation": "disabled"}, "defaults"),
        ({"service_tier": "auto", "include": ["reasoning.encrypted_content"], "background": False}, "defaults"),
    ],
)
def test_options_reach_the_worker(scripted: OpenAI, options: Any, answered: str) -> None:
    assert ask(scripted, "options", **options).output_text == answered


@pytest.mark.slow
def test_data_is_parsed_into_the_clients_own_type(tiny: OpenAI) -> None:
    response = tiny.responses.parse(
        model=TINY, input="Ada is 36 years old.", text_format=Person, temperature=0, max_output_tokens=60
    )
    assert isinstance(response.output_parsed, Person)


@pytest.mark.slow
def test_any_json_object_can_be_asked_for(tiny: OpenAI) -> None:
    response = ask_tiny(tiny, "Ada is 36 years old.", text={"format": {"type": "json_object"}}, max_output_tokens=60)
    assert response.status == "incomplete" or isinstance(json.loads(response.output_text), dict)
    assert response.output_text.startswith("{")


def test_log_probabilities_come_where_they_are_included(scripted: OpenAI) -> None:
    response = ask(scripted, "one two", include=["message.output_text.logprobs"], top_logprobs=2)
    tokens = response.output[0].content[0].logprobs
    assert [token.token for token in tokens] == ["one ", "two"]
    assert [len(token.top_logprobs) for token in tokens] == [2, 2]
    without_include = ask(scripted, "one two", top_logprobs=2)
    assert without_include.output[0].content[0].logprobs == tokens
    assert without_include.top_logprobs == 2
    assert ask(scripted, "one two", top_logprobs=0).output[0].content[0].logprobs == []


def test_the_response_repeats_lmwires_own_sampling_fields(scripted: OpenAI) -> None:
    response = ask(scripted, "one two", extra_body={"top_k": 20, "min_p": 0.1}).to_dict()
    assert (response["top_k"], response["min_p"]) == (20, 0.1)
    assert "top_k" not in ask(scripted, "one two").to_dict()


@pytest.mark.slow
def test_the_tokens_of_a_prompt_are_counted_without_an_answer(tiny: OpenAI) -> None:
    first = ask_tiny(tiny, "Who are you?", instructions="Be brief.", tools=[WEATHER])
    fields: Any = {"model": TINY, "input": "Who are you?", "instructions": "Be brief.", "tools": [WEATHER]}
    counted = tiny.post("/responses/input_tokens", body=fields, cast_to=object)
    assert counted == {"object": "response.input_tokens", "input_tokens": first.usage.input_tokens}
    fields = {"model": TINY, "input": "Why?", "previous_response_id": first.id}
    second = ask_tiny(tiny, "Why?", previous_response_id=first.id)
    counted = tiny.post("/responses/input_tokens", body=fields, cast_to=object)
    assert counted == {"object": "response.input_tokens", "input_tokens": second.usage.input_tokens}


def test_what_is_not_served_says_what_to_do_instead(scripted: OpenAI) -> None:
    with pytest.raises(openai.InternalServerError) as refused:
        scripted.post("/responses/compact", body={}, cast_to=object)
    assert (refused.value.status_code, refused.value.code) == (501, "unsupported")
    assert "shorter" in refused.value.message


def test_a_response_that_is_complete_cannot_be_cancelled(scripted: OpenAI) -> None:
    response = ask(scripted, "one two three")
    with pytest.raises(openai.BadRequestError, match=r"Cannot cancel a synchronous response\..*close the connection"):
        scripted.responses.cancel(response.id)
    assert scripted.responses.retrieve(response.id).status == "completed"
    with pytest.raises(openai.NotFoundError, match=r"Response with id 'resp_1' not found"):
        scripted.responses.cancel("resp_1")


@pytest.mark.parametrize("verbosity", ["low", "medium", "high"])
def test_verbosity_is_accepted_as_in_chat(scripted: OpenAI, verbosity: Any) -> None:
    assert ask(scripted, "one two", text={"verbosity": verbosity}).text.verbosity == verbosity
    message: Any = {"role": "user", "content": "one two"}
    assert scripted.chat.completions.create(model=MOCK, messages=[message], verbosity=verbosity).choices


def test_an_answer_that_is_cut_short_is_incomplete(scripted: OpenAI) -> None:
    response = ask(scripted, "one two three", max_output_tokens=2)
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert (response.output[0].status, response.output_text) == ("incomplete", "one two ")


def test_a_stored_response_can_be_retrieved_and_deleted(scripted: OpenAI) -> None:
    response = ask(scripted, "one two three")
    assert scripted.responses.retrieve(response.id) == response
    scripted.responses.delete(response.id)
    with pytest.raises(openai.NotFoundError, match=f"Response with id '{response.id}' not found"):
        scripted.responses.retrieve(response.id)
    with pytest.raises(openai.NotFoundError):
        scripted.responses.delete(response.id)


def test_a_response_with_store_off_is_not_stored(scripted: OpenAI) -> None:
    response = ask(scripted, "one two three", store=False)
    assert response.store is False
    with pytest.raises(openai.BadRequestError) as refused:
        ask(scripted, "more", previous_response_id=response.id)
    assert (refused.value.param, refused.value.code) == ("previous_response_id", "previous_response_not_found")


def test_the_items_that_a_response_answers_come_some_at_a_time(scripted: OpenAI) -> None:
    response = ask(scripted, [{"role": "user", "content": str(number)} for number in range(5)])
    listed = scripted.responses.input_items.list(response.id, order="asc", limit=2)
    assert [item.content[0].text for item in listed.data if item.type == "message"] == ["0", "1"]  # type: ignore
    everything = list(scripted.responses.input_items.list(response.id, limit=2))
    assert [item.content[0].text for item in everything if item.type == "message"] == [*"43210"]  # type: ignore


def test_a_stored_response_does_not_stream_again(scripted: OpenAI) -> None:
    response = ask(scripted, "one two three")
    with pytest.raises(openai.BadRequestError, match="stream"):
        scripted.responses.retrieve(response.id, stream=True)
