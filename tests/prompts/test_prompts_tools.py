"""Tools, calls and results in the prompt: where the template has a place for them, and where they go into the text."""

import json
from typing import Any

import pytest

from lmwire_protocol import CalledTool, Function, ImagePart, Media, Message, RequestError, Tool
from lmwire_worker.output_parsing import Syntax
from lmwire_worker.prompts.turns import read_turns
from support.models.chat_templates import DEEPSEEK_R1, GEMMA2, GEMMA3, GPT_OSS, LLAMA31, MISTRAL, PHI3, QWEN3
from support.runners.prompting import (
    FOLDED,
    GEMMA,
    HARMONY,
    LLAMA,
    MISTRAL_MARKS,
    PLAIN,
    QWEN,
    WEATHER,
    assistant,
    call,
    prompt,
    result,
    system,
    tokenized,
    user,
)

CONVERSATION = [
    system("Be brief."),
    user("Weather in Paris and Rome?"),
    assistant("Let me see.", tool_calls=[call("Paris", "call_1", days=2), call("Rome", "call_2")]),
    result("sunny", "call_1"),
    result("rainy", "call_2"),
]


def text(template: str | None, *messages: Message, syntax: Syntax = QWEN, **fields: Any) -> str:
    return prompt(template, *messages, syntax=syntax, **fields).text


def in_order(found: str, *fragments: str) -> bool:
    at = -1
    for fragment in fragments:
        at = found.find(fragment, at + 1)
        if at < 0:
            return False
    return True


# Templates that know tools


def test_a_template_that_knows_tools_gets_them_in_openais_shape() -> None:
    found = text(QWEN3, user("Weather?"), tools=[WEATHER])
    assert '{"type": "function", "function": {"name": "get_weather", "description": "Tells the weather.",' in found


@pytest.mark.parametrize(("template", "syntax"), [(QWEN3, QWEN), (GEMMA2, GEMMA), (LLAMA31, LLAMA)])
def test_results_have_the_order_of_their_calls(template: str, syntax: Syntax) -> None:
    *before, first, second = CONVERSATION
    stranger, after = result("windy", "call_9"), user("And tomorrow?")
    expected = text(template, *before, first, second, stranger, after, syntax=syntax, tools=[WEATHER])
    assert in_order(expected, "sunny", "rainy", "windy", "tomorrow")
    for given in ((second, first, stranger), (stranger, second, first)):
        assert text(template, *before, *given, after, syntax=syntax, tools=[WEATHER]) == expected


def test_the_order_of_results_is_that_of_the_last_turn_with_calls() -> None:
    *before, first, second = CONVERSATION
    later = assistant(tool_calls=[call("Oslo", "call_3"), call("Bern", "call_1")])
    found = text(QWEN3, *before, second, first, later, result("cold", "call_3"), result("mild", "call_1"))
    assert in_order(found, "sunny", "rainy", "cold", "mild")


def test_results_with_images_stay_in_the_order_of_the_messages() -> None:
    *before, first, second = CONVERSATION
    seen = Message(role="tool", content=[ImagePart(Media(path="/sky.png"))], tool_call_id="call_2")
    for last in (first, second):
        turns = read_turns([*before, seen, last], strict_media=True, supported_kinds=("image",))
        assert [turn.call_id for turn in turns[-2:]] == ["call_2", last.tool_call_id]


def test_a_tool_without_parameters_takes_an_object_of_none() -> None:
    found = text(QWEN3, user("Time?"), tools=[Tool(function=Function(name="now"))])
    assert '"parameters": {"type": "object", "properties": {}}' in found


def test_calls_and_results_are_written_as_the_family_writes_them() -> None:
    found = text(QWEN3, *CONVERSATION, tools=[WEATHER])
    assert in_order(
        found,
        'Let me see.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}\n</tool_call>',
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}',
        "<tool_response>\nsunny\n</tool_response>\n<tool_response>\nrainy\n</tool_response>",
    )


def test_no_tools_are_shown_when_none_may_be_called() -> None:
    assert "get_weather" not in text(QWEN3, user("Weather?"), tools=[WEATHER], tool_choice="none")
    assert "get_weather" not in text(PHI3, user("Weather?"), tools=[WEATHER], tool_choice="none", syntax=FOLDED)


@pytest.mark.parametrize("arguments", ['{"city": "Paris"}', {"city": "Paris"}])
def test_arguments_come_as_an_object_or_as_its_text(arguments: Any) -> None:
    called = CalledTool(id="a", name="get_weather", arguments=arguments)
    assert '"arguments": {"city": "Paris"}}' in text(QWEN3, user("?"), assistant(tool_calls=[called]))


def test_arguments_that_are_no_text_at_all_are_none() -> None:
    called = CalledTool(id="a", name="now", arguments="")
    assert '"arguments": {}}' in text(QWEN3, user("?"), assistant(tool_calls=[called]))


@pytest.mark.parametrize("arguments", ['{"city": ', "[1]", "null", "[" * 100_000])
def test_arguments_that_are_no_object_are_named(arguments: str) -> None:
    called = [call(), CalledTool(id="a", name="get_weather", arguments=arguments)]
    with pytest.raises(RequestError) as caught:
        text(QWEN3, user("?"), assistant(tool_calls=called))
    assert (caught.value.code, caught.value.field) == ("invalid_request", "messages[1].tool_calls[1].arguments")


def test_a_template_that_takes_one_call_at_a_time_gets_each_with_its_result() -> None:
    found = text(LLAMA31, *CONVERSATION, tools=[WEATHER], syntax=LLAMA)
    assert in_order(found, "Let me see.<|eot_id|>", '"Paris", "days": 2}}', '"sunny"', '"Rome"}}', '"rainy"')


def test_a_template_that_refuses_text_beside_a_call_gets_two_messages() -> None:
    turns = [user("?"), assistant("Let me see.", reasoning="Look it up.", tool_calls=[call()]), result("sunny")]
    found = text(GPT_OSS, *turns, tools=[WEATHER], syntax=HARMONY)
    assert in_order(found, "final<|message|>Let me see.", "analysis<|message|>Look it up.", "to=functions.get_weather")


def test_ids_are_short_where_the_template_wants_them_so() -> None:
    found = text(MISTRAL, *CONVERSATION, tools=[WEATHER], syntax=MISTRAL_MARKS)
    assert in_order(found, '"id": "000000000"', '"id": "000000001"', '"call_id": "000000000"', '"call_id": "000000001"')


def test_ids_of_that_form_stay() -> None:
    turns = [user("?"), assistant(tool_calls=[call(call_id="a1b2c3d4e")]), result("sunny", "a1b2c3d4e")]
    found = text(MISTRAL, *turns, tools=[WEATHER], syntax=MISTRAL_MARKS)
    assert in_order(found, '"id": "a1b2c3d4e"', '"call_id": "a1b2c3d4e"')


@pytest.mark.parametrize(
    ("given", "written"),
    [("call_1", "functions.get_weather:0"), ("functions.get_weather:7", "functions.get_weather:7")],
)
def test_ids_have_the_functions_name_where_the_template_writes_it_nowhere_else(given: str, written: str) -> None:
    template = (
        "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}<{{ m.role }}>"
        "{{ m.tool_call_id }}{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<call>{{ c.id }} {{ c.function.arguments | tojson }}{% endfor %}{% endfor %}"
    )
    turns = [user("?"), assistant(tool_calls=[call(call_id=given)]), result("sunny", given)]
    found = text(template, *turns, tools=[WEATHER], syntax=MISTRAL_MARKS)
    assert in_order(found, f'<call>{written} {{"city"', f"<tool>{written}sunny")


def test_arguments_are_text_where_the_template_wants_them_so() -> None:
    template = (
        "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}"
        "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "{{ c.function.name + ' ' + c.function.arguments }}{% endfor %}{% endfor %}"
    )
    assert 'get_weather {"city": "Zürich"}' in text(
        template, user("?"), assistant(tool_calls=[call("Zürich")]), syntax=MISTRAL_MARKS
    )


def test_tools_that_need_a_system_message_get_one() -> None:
    template = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
        "{% if m.role == 'system' %}{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% endif %}"
        "{% for c in m.tool_calls or [] %}{{ c.function }}{% endfor %}{% endfor %}"
    )
    found = text(template, user("Weather?"), tools=[WEATHER], syntax=MISTRAL_MARKS)
    assert found == "<system>get_weather<user>Weather?"


# Templates that know none


@pytest.mark.parametrize("template", [GEMMA2, GEMMA3])
def test_gemma_is_shown_python_functions_in_the_first_users_turn(template: str) -> None:
    found = text(template, *CONVERSATION, user("So?"), tools=[WEATHER], syntax=GEMMA)
    assert in_order(
        found,
        "<bos><start_of_turn>user\nBe brief.",
        "At each turn, if you decide to invoke any of the function(s), it should be wrapped with ```tool_code```.",
        "The following Python methods are available:",
        'def get_weather(city: str, days: int = None):\n    """Tells the weather.',
        "        city: Where.",
        "Weather in Paris and Rome?<end_of_turn>",
        'Let me see.\n```tool_code\nget_weather(city="Paris", days=2)\nget_weather(city="Rome")\n```<end_of_turn>',
        "<start_of_turn>user\n```tool_output\nsunny\n```\n```tool_output\nrainy\n```\n\nSo?<end_of_turn>",
    )
    assert found.count("<start_of_turn>user") == 2


@pytest.mark.parametrize("template", [PHI3, DEEPSEEK_R1])
def test_other_models_are_shown_json_in_the_system_text(template: str) -> None:
    found = text(template, *CONVERSATION, tools=[WEATHER], syntax=FOLDED)
    assert in_order(
        found,
        "Be brief.",
        '\n{"name": "get_weather", "description": "Tells the weather.", "parameters": {"type": "object",',
        '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>',
        "Weather in Paris and Rome?",
        'Let me see.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}\n</tool_call>\n',
        "<tool_response>\nsunny\n</tool_response>\n<tool_response>\nrainy\n</tool_response>",
    )


def test_earlier_calls_are_in_the_prompt_even_without_tools() -> None:
    found = text(PHI3, *CONVERSATION, syntax=FOLDED)
    assert "# Tools" not in found and '"arguments": {"city": "Rome"}' in found


def test_a_template_whose_calls_are_not_those_that_are_read_is_taught_them() -> None:
    foreign = (
        "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}"
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ m.tool_calls }}{% endfor %}"
    )
    assert "<tool_call>" in text(foreign, user("?"), tools=[WEATHER], syntax=FOLDED)


@pytest.mark.parametrize(
    ("syntax", "fields", "field"),
    [(PLAIN, {"tools": [WEATHER]}, "tools"), (HARMONY, {"tools": [WEATHER]}, "tools"), (HARMONY, {}, "messages")],
    ids=["no format is known", "the format cannot be taught", "calls of the past"],
)
def test_tools_that_the_prompt_cannot_express_are_refused(syntax: Syntax, fields: Any, field: str) -> None:
    with pytest.raises(RequestError) as caught:
        text(PHI3, *CONVERSATION, syntax=syntax, **fields)
    assert (caught.value.code, caught.value.field) == ("unsupported", field)


def test_tokenize_counts_tools_too() -> None:
    assert "get_weather" in tokenized(None, messages=[user("?")], tools=[WEATHER]).text


@pytest.mark.parametrize(("template", "syntax"), [(GEMMA3, GEMMA), (PHI3, FOLDED)])
def test_a_call_that_went_into_the_text_reads_as_that_call(template: str, syntax: Syntax) -> None:
    arguments = {"city": 'Zürich "West"\n', "days": [1, -2.5, True, None, {"a": "\\"}]}
    called = [CalledTool(id="a", name="get_weather", arguments=arguments)]
    found = text(template, user("?"), assistant(tool_calls=called), tools=[WEATHER], syntax=syntax)
    assert syntax.tools is not None
    section = found.rpartition(syntax.tools.start)[2].partition(syntax.tools.end)[0]
    reader = syntax.tools.make_parser([WEATHER])
    fragments = reader.push(section) + reader.end(closed=True)[0]
    assert fragments[0].name == "get_weather" and fragments[-1].complete
    assert json.loads("".join(fragment.arguments for fragment in fragments)) == arguments
