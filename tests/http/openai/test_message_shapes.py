"""Looser shapes of messages and tools: each makes the same prompt as the shape of OpenAI's API."""

from typing import Any, Final

import openai
import pytest
from openai import OpenAI

from lmwire_http.http.decoding import convert
from lmwire_http.http.unknown_fields import UnknownFields
from lmwire_http.openai.messages import AssistantMessage, Message, wire_messages
from support.http.http_server import Server

TINY: Final = "builtin:tiny"
MOCK: Final = "mock"
USER: Final = {"role": "user", "content": "Look at both."}
CALL: Final = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "sea"}'}}
OTHER: Final = {"id": "call_2", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TOOL: Final = {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {"at": {}}}}
PIXEL: Final = "data:image/png;base64,iVBORw0KGgo="
RESULT: Final = {"role": "tool", "content": "blue"}
NOTHING: Final = {"role": "tool", "content": None}
OTHER_RESULT: Final = {"role": "tool", "content": "green"}


@pytest.fixture(scope="module")
def tiny(tiny_server: Server) -> OpenAI:
    return OpenAI(base_url=f"{tiny_server.url}/v1", api_key="any", max_retries=0)


@pytest.fixture(scope="module")
def scripted(scripted_server: Server) -> OpenAI:
    return OpenAI(base_url=f"{scripted_server.url}/v1", api_key="any", max_retries=0)


def prompt_of(client: OpenAI, messages: Any, **fields: Any) -> tuple[int, int]:
    """Return the length of the prompt, and how much of it the cache has after an equal request."""
    answer = client.chat.completions.create(model=TINY, messages=messages, max_tokens=1, extra_body=fields)
    usage = answer.usage
    assert usage and usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens is not None
    return usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens


def cached_prompt_of(client: OpenAI, messages: Any, **fields: Any) -> tuple[int, int]:
    """Return the same once the cache has the prompt. A warning of the system's memory empties the cache."""
    length, cached = prompt_of(client, messages, **fields)
    for _ in range(4):
        length, cached = prompt_of(client, messages, **fields)
        if cached >= length - 1:
            return length, cached
    raise AssertionError(f"the cache has {cached} of {length} tokens")


def turns(*calls: Any, results: Any) -> list[Any]:
    return [USER, {"role": "assistant", "tool_calls": [*calls]}, *results, {"role": "user", "content": "So?"}]


STRICT_TURNS: Final = turns(
    CALL, OTHER, results=[{**RESULT, "tool_call_id": "call_1"}, {**OTHER_RESULT, "tool_call_id": "call_2"}]
)
NESTED: Final = [{"type": "function", "function": TOOL}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("messages", "fields", "loose", "loose_fields"),
    [
        ([USER], {"tools": NESTED}, [USER], {"tools": [TOOL]}),
        ([USER], {"tools": NESTED}, [USER], {"tools": [{"type": "function", **TOOL}]}),
        ([USER], {"tools": NESTED}, [USER], {"functions": [TOOL]}),
        (
            STRICT_TURNS,
            {},
            turns({**CALL, "function": {"name": "look", "arguments": {"at": "sea"}}}, OTHER, results=STRICT_TURNS[2:4]),
            {},
        ),
        (
            STRICT_TURNS,
            {},
            turns({**CALL, "id": ""}, {"function": OTHER["function"]}, results=[RESULT, OTHER_RESULT]),
            {},
        ),
        (
            [{"role": "user", "content": "Who\nare you?"}],
            {},
            [{"role": "user", "content": [{"type": "text", "text": "Who"}, {"type": "text", "text": "are you?"}]}],
            {},
        ),
    ],
)
def test_the_prompt_is_the_same(
    tiny: OpenAI, messages: Any, fields: dict[str, Any], loose: Any, loose_fields: dict[str, Any]
) -> None:
    whole = cached_prompt_of(tiny, messages, **fields)
    # Even different prompts share their start: nothing cached means that a memory warning emptied the cache meanwhile.
    found = prompt_of(tiny, loose, **loose_fields)
    if found[1] == 0:
        whole = cached_prompt_of(tiny, messages, **fields)
        found = prompt_of(tiny, loose, **loose_fields)
    assert found == whole


def wired(*messages: Any) -> list[Any]:
    return wire_messages(convert([*messages], list[Message], UnknownFields({})))


def test_results_without_ids_belong_to_the_calls_in_their_order() -> None:
    call = {"function": {"name": "look", "arguments": {}}}
    found = wired(USER, {"role": "assistant", "tool_calls": [call, call]}, RESULT, OTHER_RESULT)
    first, second = found[1]["tool_calls"]
    assert first["id"] != second["id"]
    assert [found[2]["tool_call_id"], found[3]["tool_call_id"]] == [first["id"], second["id"]]


def test_made_ids_are_not_those_of_the_client_and_never_change() -> None:
    bare = {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]}
    named = {"role": "assistant", "tool_calls": [{**CALL, "id": "call_2"}]}
    conversation = [named, {**RESULT, "tool_call_id": "call_2"}, bare, RESULT]
    ids = [call["id"] for message in wired(*conversation) for call in message.get("tool_calls", [])]
    assert len({*ids}) == 2 and ids[0] == "call_2"
    assert wired(*conversation, USER)[:4] == wired(*conversation)


def test_a_result_may_be_nothing() -> None:
    call = {"role": "assistant", "tool_calls": [CALL]}
    assert wired(call, {**NOTHING, "tool_call_id": "call_1"}) == wired(
        call, {**NOTHING, "content": "", "tool_call_id": "call_1"}
    )


def test_a_result_of_an_earlier_turn_is_not_taken_for_a_later_one() -> None:
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]}
    found = wired(call, USER, call, RESULT)
    assert found[3]["tool_call_id"] == found[2]["tool_calls"][0]["id"] != found[0]["tool_calls"][0]["id"]


@pytest.mark.slow
def test_an_image_may_be_its_url_alone(tiny: OpenAI) -> None:
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": PIXEL}]
    noted = prompt_of(tiny, [{"role": "user", "content": parts}], strict_media=False)
    parts[1] = {"type": "image_url", "image_url": {"url": PIXEL}}  # type: ignore[dict-item]
    assert prompt_of(tiny, [{"role": "user", "content": parts}], strict_media=False)[0] == noted[0]
    wrong: Any = [{"role": "user", "content": [{"type": "image_url", "image_url": "cat.png"}]}]
    with pytest.raises(openai.BadRequestError) as refused:
        tiny.chat.completions.create(model=TINY, messages=wrong)
    assert refused.value.param == "messages[0].content[0].image_url"


def test_arguments_of_a_response_item_may_be_an_object(scripted: OpenAI) -> None:
    call: Any = {"type": "function_call", "call_id": "c", "name": "look", "arguments": {"at": "sea"}}
    output: Any = {"type": "function_call_output", "call_id": "c", "output": "blue"}
    response = scripted.responses.create(model=MOCK, input=[call, output])
    listed = scripted.responses.input_items.list(response.id, order="asc").data
    assert getattr(listed[0], "arguments", None) == '{"at":"sea"}'


@pytest.mark.slow
def test_json_may_have_its_schema_in_the_older_format(tiny: OpenAI) -> None:
    schema = {"type": "object", "properties": {"name": {"const": "Ada"}}, "required": ["name"]}
    wanted: Any = {"type": "json_object", "schema": {**schema, "additionalProperties": False}}
    message: Any = {"role": "user", "content": "Who?"}
    answer = tiny.chat.completions.create(
        model=TINY, messages=[message], response_format=wanted, max_tokens=200, reasoning_effort="none"
    )
    assert (answer.choices[0].message.content or "").replace(" ", "") == '{"name":"Ada"}'


def test_reasoning_of_an_earlier_answer_may_have_both_names_with_one_text() -> None:
    def read(**fields: Any) -> Any:
        [message] = wire_messages([AssistantMessage(content="5", **fields)])
        return message.get("reasoning")

    assert read(reasoning="2 + 3") == read(reasoning_content="2 + 3") == "2 + 3"
    assert (
        read(reasoning="2 + 3", reasoning_content="2 + 3") == read(reasoning="", reasoning_content="2 + 3") == "2 + 3"
    )


def test_the_name_of_a_speaker_reaches_the_worker() -> None:
    given = [
        {"role": "system", "content": "Be brief.", "name": "host"},
        {"role": "user", "content": "Hi", "name": "ada"},
        {"role": "assistant", "content": "Hm.", "name": ""},
        {"role": "user", "content": "Well?"},
    ]
    messages = wire_messages(convert(given, list[Message], UnknownFields({})))
    assert [message.get("name") for message in messages] == ["host", "ada", None, None]


def test_texts_of_a_response_item_are_separated_too(scripted: OpenAI) -> None:
    parts: Any = [{"type": "input_text", "text": "think"}, {"type": "input_text", "text": "twice"}]
    response = scripted.responses.create(model=MOCK, input=[{"role": "user", "content": parts}])
    assert response.output_text == "think\ntwice"


# Functions, the format before tools.

ROME: Final[Any] = {"role": "user", "content": "weather in Rome"}
WEATHER: Final[Any] = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {}}}}


def test_functions_are_answered_with_a_function_call(scripted: OpenAI) -> None:
    answer = scripted.chat.completions.create(model=MOCK, messages=[ROME], functions=[WEATHER])
    [choice] = answer.choices
    assert choice.finish_reason == "function_call"
    assert choice.message.function_call and choice.message.function_call.name == "weather"
    assert choice.message.function_call.arguments.replace(" ", "") == '{"city":"Rome"}'
    assert choice.message.tool_calls is None


def test_a_stream_has_the_function_call_in_parts(scripted: OpenAI) -> None:
    chunks = [*scripted.chat.completions.create(model=MOCK, messages=[ROME], functions=[WEATHER], stream=True)]
    calls = [chunk.choices[0].delta.function_call for chunk in chunks if chunk.choices[0].delta.function_call]
    assert calls[0].name == "weather"
    assert "".join(call.arguments or "" for call in calls).replace(" ", "") == '{"city":"Rome"}'
    assert not any(chunk.choices[0].delta.tool_calls for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "function_call"


def test_the_conversation_goes_on_with_its_result(scripted: OpenAI) -> None:
    called: Any = {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": "{}"}}
    result: Any = {"role": "function", "name": "weather", "content": "sunny"}
    answer = scripted.chat.completions.create(model=MOCK, messages=[ROME, called, result], functions=[WEATHER])
    assert answer.choices[0].message.content == "sunny"
    assert wired(ROME, called, result)[2]["tool_call_id"] == wired(ROME, called)[1]["tool_calls"][0]["id"]


@pytest.mark.parametrize(("choice", "city"), [({"name": "weather"}, "by name"), ("auto", "one")])
def test_the_choice_of_a_function_is_a_tool_choice(scripted: OpenAI, choice: Any, city: str) -> None:
    options: Any = {"role": "user", "content": "options"}
    answer = scripted.chat.completions.create(model=MOCK, messages=[options], functions=[WEATHER], function_call=choice)
    assert answer.choices[0].message.function_call
    assert city in answer.choices[0].message.function_call.arguments


@pytest.mark.slow
def test_a_report_says_which_token_differs_from_what_is_cached(tiny: OpenAI) -> None:
    def misses(words: str) -> list[Any]:
        """Return the cache misses of a chat, whole and streamed, and of a text completion."""
        asked: Any = {"model": TINY, "max_tokens": 1, "extra_body": {"cache_report": True, "cache": "on"}}
        messages: Any = [{"role": "user", "content": words}]
        whole = tiny.chat.completions.create(messages=messages, **asked).usage
        streamed = tiny.chat.completions.create(
            messages=messages, stream=True, stream_options={"include_usage": True}, **asked
        )
        *_, last = streamed
        text = tiny.completions.create(prompt=words, **asked).usage
        return [
            (usage.prompt_tokens_details.model_extra or {}).get("cache_miss")
            for usage in (whole, last.usage, text)
            if usage and usage.prompt_tokens_details
        ]

    words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    misses(f"{words} fifteen sixteen")
    chat, again, text = misses(f"{words} zebra sixteen")
    assert chat["known_tokens"] > 14
    assert chat["token"] and " zebra".startswith(chat["token"])
    repeated, *_ = misses(f"{words} zebra sixteen")
    assert None in (again, repeated), "the same prompt once more; a hit now and then is computed anew, as a check"
    assert text["token"] and " zebra".startswith(text["token"])
