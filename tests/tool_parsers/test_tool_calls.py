"""Ways to write a call that single formats know."""

import json
from itertools import product
from typing import Any

import pytest

from lmwire_protocol import Tool
from lmwire_protocol.messages import Function
from lmwire_worker.output_parsing import OutputParser
from lmwire_worker.prompts.python_tool_signatures import signature
from lmwire_worker.tool_parsers import FORMATS, ToolCallParser, WrittenCall
from support.many_cases import for_each
from support.models.tool_samples import WRITERS, tool
from support.runners.answer_parts import joined, syntax_of

TOOLS = [tool("get_weather"), tool("add")]
PARIS = '{"city": "Paris"}'


def reader_of(name: str) -> ToolCallParser:
    return FORMATS[name].make_parser(TOOLS)


def calls(name: str, text: str, tools: list[Tool] = TOOLS) -> list[tuple[str | None, Any, str | None]]:
    """The whole calls of a section that holds nothing else: names, arguments, ids."""
    reader = FORMATS[name].make_parser(tools)
    fragments = reader.push(text)
    last, rest = reader.end()
    fragments += last
    assert rest == ""
    heads = [fragment for fragment in fragments if fragment.name]
    texts = ["".join(fragment.arguments for fragment in fragments if fragment.index == head.index) for head in heads]
    return [(head.name, json.loads(text), head.call_id) for head, text in zip(heads, texts, strict=True)]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "f", "arguments": {"a": 1}}',
        '{"arguments": {"a": 1}, "name": "f"}',
        '{"name": "f", "parameters": {"a": 1}}',
        '{"type": "function", "name": "f", "arguments": {"a": 1}}',
        '{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}',
        '{"type": "function", "function": "f", "parameters": {"a": 1}}',
        '{"name": "f", "arguments": "{\\"a\\": 1}"}',
        '[{"name": "f", "arguments": {"a": 1}}]',
        '{"na\\u006de": "f", "arguments": {"a": 1}}',
    ],
)
def test_objects_describe_a_call_in_many_ways(text: str) -> None:
    assert calls("json_tools", text) == [("f", {"a": 1}, None)]


@pytest.mark.parametrize(
    "text", ['{"name": "f"}', '{"name": "f", "arguments": null}', '{"name": "f", "arguments": {}}']
)
def test_a_call_may_lack_arguments(text: str) -> None:
    assert calls("json_tools", text) == [("f", {}, None)]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"name": "", "arguments": {}}',
        '{"name": 5, "arguments": {}}',
        '{"name": "f", "arguments": [1]}',
        '{"name": "f", "arguments": "Paris"}',
        '{"name": "f", "arguments": {"a": 1e999}}',
        '{"name": "f", "arguments": {}, "name": "g"}',
        '{"name": "f", "arguments": {"a": "\\ud800"}}',
    ],
)
def test_an_object_that_describes_no_call_is_text(text: str) -> None:
    reader = reader_of("json_tools")
    fragments = reader.push(text)
    last, rest = reader.end()
    assert not any(fragment.complete for fragment in fragments + last)
    assert rest == text


def test_a_models_own_id_is_kept() -> None:
    assert calls("mistral", f'[{{"name": "f", "arguments": {PARIS}, "id": "abc"}}]')[0][2] is None  # came too late
    assert calls("mistral", f'[{{"id": "abc", "name": "f", "arguments": {PARIS}}}]')[0][2] == "abc"
    assert calls("mistral", f"f[CALL_ID]abc[ARGS]{PARIS}")[0][2] == "abc"
    text = f"<|tool_call_begin|>functions.f:7<|tool_call_argument_begin|>{PARIS}<|tool_call_end|>"
    assert calls("kimi_k2", text)[0][2] == "functions.f:7"


@pytest.mark.parametrize(
    "text",
    [
        f"functions.f <|constrain|>json<|message|>{PARIS}",
        f"functions.f<|message|>{PARIS}",
        f"f code<|message|>{PARIS}",
        f" to=functions.f<|channel|>commentary json<|message|>{PARIS}",
        f"<|channel|>commentary to=functions.f <|constrain|>json<|message|>\n{PARIS}\n",
        f"functions.f<|channel|>commentary <|constrain|>json<|message|>{PARIS}",
    ],
)
def test_harmony_names_the_function_anywhere_in_the_header(text: str) -> None:
    assert calls("harmony", text) == [("f", {"city": "Paris"}, None)]


def test_llama_calls_may_follow_a_python_tag() -> None:
    text = f'\n<|python_tag|>{{"name": "add", "parameters": {PARIS}}}'
    assert calls("llama3_json", text) == [("add", {"city": "Paris"}, None)]
    reader = reader_of("llama3_json")
    for character in text:
        reader.push(character)
        assert not reader.is_abandoned


@pytest.mark.parametrize(
    "text",
    [
        "T",
        "<|py ",
        "[1",
        "{}",
        "{1",
        '{"answer": 4',
        '{"name": "Alice"',
        '{"name": 7',
        '{"type": "function", "name": "Alice", "parameters": {}}',
        '{"name": "add", "parameters": 7}',
    ],
)
def test_text_that_is_no_call_is_known_at_once(text: str) -> None:
    reader = reader_of("llama3_json")
    assert reader.push(text[:-1]) == []
    assert not reader.is_abandoned
    assert reader.push(text[-1]) == []
    assert reader.is_abandoned
    assert reader.end() == ([], text)


def test_text_after_a_bare_call_is_text() -> None:
    reader = reader_of("llama3_json")
    reader.push(f'{{"name": "add", "parameters": {PARIS}}} ')
    assert not reader.is_abandoned
    reader.push("Done")
    assert reader.is_abandoned
    assert reader.end() == ([], " Done")


@pytest.mark.parametrize("name", ["glm47", "laguna", "longcat"])
def test_a_bare_name_of_a_known_function_is_a_call(name: str) -> None:
    assert calls(name, "add\n") == [("add", {}, None)]
    for text, closed in (("subtract", True), ("add", False)):
        reader = reader_of(name)
        reader.push(text)
        assert reader.end(closed) == ([], text)


@pytest.mark.parametrize("name", ["glm47", "longcat"])
def test_json_between_tags_is_a_call(name: str) -> None:
    assert calls(name, f'{{"name": "add", "arguments": {PARIS}}}') == [("add", {"city": "Paris"}, None)]


def test_kimi_k3_may_write_all_arguments_as_json() -> None:
    text = f'<|open|>call tool="f" index="1"<|sep|><|open|>json type="object"<|sep|>{PARIS}<|close|>json<|sep|>'
    assert calls("kimi_k3", f"{text}<|close|>call<|sep|>") == [("f", {"city": "Paris"}, None)]


@pytest.mark.parametrize("name", ["qwen3_coder", "minimax_m2", "glm47"])
def test_values_between_tags_have_the_types_of_the_schema(name: str) -> None:
    texts = {
        "qwen3_coder": "<function=f><parameter=note>\n12\n</parameter><parameter=days>12</parameter></function>",
        "minimax_m2": '<invoke name="f"><parameter name="note">12</parameter><parameter name="days">12</parameter>'
        "</invoke>",
        "glm47": "f<arg_key>note</arg_key><arg_value>12</arg_value><arg_key>days</arg_key><arg_value>12</arg_value>",
    }
    assert calls(name, texts[name], [tool("f")]) == [("f", {"note": "12", "days": 12}, None)]


def test_a_value_between_tags_may_hold_other_tags() -> None:
    note = "close it with </function>, after <parameter=days>"
    text = f"<function=f>\n<parameter=note>\n{note}\n</parameter>\n</function>"
    assert calls("qwen3_coder", text, [tool("f")]) == [("f", {"note": note}, None)]


def test_a_call_inside_a_value_is_not_called() -> None:
    text = "<function=f><parameter=days>\n<function=add></function>\n</parameter></function>"
    assert calls("qwen3_coder", text, [tool("f")]) == [("f", {"days": "<function=add></function>"}, None)]


@pytest.mark.parametrize(
    "properties", [{"note": True}, ["note"], {"note": {"type": ["string", "null"]}}, {"note": {"anyOf": [{}]}}]
)
@pytest.mark.parametrize("name", ["glm47", "longcat", "qwen3_coder", "minimax_m2", "minicpm5", "muse_spark", "kimi_k3"])
def test_no_schema_keeps_a_call_from_being_read(name: str, properties: Any) -> None:
    odd = Tool(function=Function(name="f", parameters={"properties": properties}))
    assert calls(name, WRITERS[name]([("f", {"note": "Paris"})]), [odd]) == [("f", {"note": "Paris"}, None)]


@pytest.mark.parametrize("name", ["json_tools", "glm47", "qwen3_coder", "kimi_k3"])
def test_a_call_of_a_function_that_nobody_offered_is_read_too(name: str) -> None:
    offered = Tool(function=Function(name="f"))
    assert calls(name, WRITERS[name]([("g", {"note": "Paris"})]), [offered]) == [("g", {"note": "Paris"}, None)]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("print(get_weather(city='Paris'))", {"city": "Paris"}),
        ("get_weather('Paris', days=2)", {"city": "Paris", "days": 2}),
        ('get_weather(city="""two\nlines""")', {"city": "two\nlines"}),
        ('get_weather(city="two\nlines")', {"city": "two\nlines"}),
        ("get_weather(tags=[true, null, (1, -2.5)], exact=False)", {"tags": [True, None, [1, -2.5]], "exact": False}),
        ("get_weather(city='a) \\' \"b', note=')(')", {"city": "a) ' \"b", "note": ")("}),
        ("get_weather(\n  city='Paris',\n)", {"city": "Paris"}),
        ("get_weather()", {}),
    ],
)
@pytest.mark.parametrize("name", ["pythonic", "gemma3_code"])
def test_python_calls_hold_literals(name: str, text: str, arguments: Any) -> None:
    assert calls(name, text) == [("get_weather", arguments, None)]


@pytest.mark.parametrize(
    "text",
    [
        "add(1 + 1)",
        "add(open('x'))",
        "add(**{})",
        "see (here)",
        "get_weather(days=three)",
        "get_weather(Paris, note, three)",
        "get_weather(city=New York, NY)",
        "get_weather(city='Paris', city='Rome')",
        "get_weather('Paris', city='Rome')",
        "get_weather('a', 'b', 3, True, [], {}, 7)",
        "get_weather(city=get_city())",
    ],
)
def test_python_that_is_no_call_with_literals_is_text(text: str) -> None:
    reader = reader_of("gemma3_code")
    fragments = reader.push(text)
    last, rest = reader.end()
    assert not any(fragment.complete for fragment in fragments + last)
    assert rest == text


LATE_REQUIRED = Tool(
    function=Function(
        name="get_weather",
        parameters={
            "properties": {"days": {"type": "integer"}, "city": {"type": "string"}, "unit": {"type": "string"}},
            "required": ["city"],
        },
    )
)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('get_weather("Paris")', {"city": "Paris"}),
        ('get_weather("Paris", 3)', {"city": "Paris", "days": 3}),
        ('get_weather("Paris", unit="C")', {"city": "Paris", "unit": "C"}),
        ('get_weather(days=3, "Paris")', {"days": 3, "city": "Paris"}),
    ],
)
@pytest.mark.parametrize("name", ["pythonic", "gemma3_code"])
def test_positional_arguments_are_in_the_order_of_the_signature_in_the_prompt(
    name: str, text: str, arguments: Any
) -> None:
    assert signature(LATE_REQUIRED.function).startswith("def get_weather(city: str, days: int")
    assert calls(name, text, [LATE_REQUIRED]) == [("get_weather", arguments, None)]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("get_weather(city=Paris)", {"city": "Paris"}),
        ("get_weather(city=New York, days=3)", {"city": "New York", "days": 3}),
        ("get_weather(city=75001)", {"city": "75001"}),
        ("get_weather(note=/tmp/a.txt, exact=true)", {"note": "/tmp/a.txt", "exact": True}),
        ("get_weather(note=2026-01-02)", {"note": "2026-01-02"}),
        ("get_weather(Paris)", {"city": "Paris"}),
    ],
)
@pytest.mark.parametrize("name", ["pythonic", "gemma3_code"])
def test_a_string_may_lack_its_quotes(name: str, text: str, arguments: Any) -> None:
    assert calls(name, text) == [("get_weather", arguments, None)]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("get_weather(note='sed -n '1,9p' a.py', days=2)", {"note": "sed -n '1,9p' a.py", "days": 2}),
        ("get_weather(days=2, note='it's (so, so) far')", {"days": 2, "note": "it's (so, so) far"}),
        ('get_weather(note="say "hi", twice")', {"note": 'say "hi", twice'}),
        ("get_weather(note='f(x, y='\\,')')", {"note": "f(x, y='\\,')"}),
        ("get_weather(note='a\\n'b'\\t')", {"note": "a\n'b'\t"}),
        ("get_weather(note='a\0b')", {"note": "a\0b"}),
        ("get_weather(days=07)", {"days": 7}),
        ("get_weather(city=07)", {"city": "07"}),
    ],
)
def test_quotes_in_a_string_may_lack_their_backslash(text: str, arguments: Any) -> None:
    assert calls("pythonic", f"[{text}]") == [("get_weather", arguments, None)]
    again = [("get_weather", arguments, None), ("get_weather", {"city": "Rome"}, None)]
    assert calls("pythonic", f"[{text}, get_weather(city='Rome')]") == again


def test_white_space_after_a_string_is_read_once() -> None:
    """Tried again at each of its characters, this much would take a minute."""
    reader = reader_of("pythonic")
    reader.push(f"[get_weather(note='it's late'){' ' * 30_000}1")
    fragments, _ = reader.end()
    assert not any(fragment.complete for fragment in fragments)


def test_gemmas_word_before_a_call_may_be_missing() -> None:
    assert calls("gemma4", ':get_weather{city:<|"|>Paris<|"|>}') == [("get_weather", {"city": "Paris"}, None)]


@pytest.mark.parametrize("wrapper", ["arguments", "input"])
def test_all_arguments_may_be_an_object_in_one_tag(wrapper: str) -> None:
    text = f'<function=get_weather>\n<parameter={wrapper}>\n{{"city": "Paris", "days": 2}}\n</parameter>\n</function>'
    assert calls("qwen3_coder", text) == [("get_weather", {"city": "Paris", "days": 2}, None)]
    other = text.replace("city", "unknown")
    assert calls("qwen3_coder", other) == [("get_weather", {wrapper: {"unknown": "Paris", "days": 2}}, None)]


def test_a_number_between_tags_may_start_with_zero() -> None:
    text = "<function=get_weather>\n<parameter=city>\n07\n</parameter>\n<parameter=days>\n07\n</parameter>\n</function>"
    assert calls("qwen3_coder", text) == [("get_weather", {"city": "07", "days": 7}, None)]


@pytest.mark.parametrize(
    ("text", "value"), [('"a"', '"a"'), ("5", 5), ("null", None), ("{x", "{x"), ('{"x": 1}', '{"x": 1}')]
)
def test_where_a_string_is_allowed_other_types_alone_are_read_as_json(text: str, value: Any) -> None:
    schema = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}
    tools = [Tool(function=Function(name="note", parameters={"type": "object", "properties": {"it": schema}}))]
    reader = FORMATS["qwen3_coder"].make_parser(tools)
    fragments = reader.push(f"<function=note>\n<parameter=it>\n{text}\n</parameter>\n</function>")
    assert json.loads("".join(fragment.arguments for fragment in fragments)) == {"it": value}


@pytest.mark.parametrize("text", ["1e999", "NaN", "-Infinity", "[1e999]", "{'a': 1e999}", "{1, 2}", "[b'a']"])
@pytest.mark.parametrize("kind", ["number", "array", "object", None])
def test_a_value_that_json_has_not_stays_text(text: str, kind: str | None) -> None:
    schema = {"it": {"type": kind} if kind else {}}
    tools = [Tool(function=Function(name="note", parameters={"type": "object", "properties": schema}))]
    reader = FORMATS["qwen3_coder"].make_parser(tools)
    fragments = reader.push(f"<function=note>\n<parameter=it>\n{text}\n</parameter>\n</function>")
    assert json.loads("".join(fragment.arguments for fragment in fragments)) == {"it": text}


def starts_alone(name: str) -> bool:
    """Return whether a call of this format may lack the section's start."""
    return FORMATS[name].shape.write(WrittenCall("f", {}), 0).startswith(FORMATS[name].lost_starts or ("\0",))


@pytest.mark.parametrize("name", sorted(filter(starts_alone, FORMATS)))
def test_a_call_without_the_sections_start_counts_if_the_function_is_offered(name: str) -> None:
    whole = FORMATS[name].write([WrittenCall("get_weather", {"city": "Paris"}, "id0000000")])
    text = whole.removeprefix(FORMATS[name].start).lstrip()
    syntax = syntax_of(tools=FORMATS[name])
    parser = OutputParser(syntax, syntax.initial, TOOLS, True)
    (call,) = [part for part in joined(parser.push(f"Let me see. {text}") + parser.end(True)) if part[0] == "call"]
    assert (call[2], json.loads(call[3]), call[4]) == ("get_weather", {"city": "Paris"}, "whole")
    other = OutputParser(syntax, syntax.initial, [tool("add")], True)
    assert joined(other.push(text) + other.end(True)) == [("content", text)]


@pytest.mark.parametrize("name", ["pythonic", "gemma3_code"])
def test_positional_arguments_of_an_unknown_function_are_numbered(name: str) -> None:
    assert calls(name, 'find("x", 2, city=Paris)') == [("find", {"arg0": "x", "arg1": 2, "city": "Paris"}, None)]


RUN = Tool(function=Function(name="run", parameters={"properties": {"command": {"type": "string"}}}))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\nrun ls -la /tmp\n", [("run", {"command": "ls -la /tmp"})]),
        ('run "ls -la"', [("run", {"command": "ls -la"})]),
        ("run echo $(date) > 'a b'", [("run", {"command": "echo $(date) > 'a b'"})]),
        ("run 5", [("run", {"command": "5"})]),
        ("run", [("run", {})]),
        ("run ls\n\nrun pwd", [("run", {"command": "ls"}), ("run", {"command": "pwd"})]),
        ("run (ls)", [("run", {"command": "ls"})]),
        ("add 5", []),
        ("runs ls", []),
        ("run = ls", []),
        ("run cat <<END\nx\nEND", []),
        ('run ls\nadd("x")', []),
        ("let us run ls", []),
    ],
)
def test_gemma_may_write_command_lines(text: str, found: Any) -> None:
    add = Tool(function=Function(name="add"))
    reader = FORMATS["gemma3_code"].make_parser([RUN, add])
    fragments = [fragment for character in text for fragment in reader.push(character)]
    last, rest = reader.end()
    fragments += last
    names = [fragment.name for fragment in fragments if fragment.complete]
    heads = [fragment for fragment in fragments if fragment.name]
    texts = ["".join(fragment.arguments for fragment in fragments if fragment.index == head.index) for head in heads]
    assert [(head.name, json.loads(text)) for head, text in zip(heads, texts, strict=True)] == found
    assert len(names) == len(found)
    assert rest == ("" if found else text)


def test_a_command_line_that_was_cut_off_is_text() -> None:
    reader = FORMATS["gemma3_code"].make_parser([RUN])
    assert reader.push("run rm -r /tmp") == []
    assert reader.end(closed=False) == ([], "run rm -r /tmp")


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("{note:<escape>a}b,c:d{<escape>}", {"note": "a}b,c:d{"}),
        ("{place:{at:[1,{x:<escape>y<escape>}]},exact:true}", {"place": {"at": [1, {"x": "y"}]}, "exact": True}),
        ("{ city : Paris , tags : [ 1 , None ] }", {"city": "Paris", "tags": [1, None]}),
        ("{place:{<escape>a b<escape>:1.5}}", {"place": {"a b": 1.5}}),
    ],
)
def test_gemma_calls_nest_and_quote(text: str, arguments: Any) -> None:
    assert calls("function_gemma", f"call:f{text}") == [("f", arguments, None)]
    assert calls("gemma4", f"call:f{text}".replace("<escape>", '<|"|>')) == [("f", arguments, None)]


@pytest.mark.parametrize("name", ["glm45", "glm47", "laguna"])
@pytest.mark.parametrize(
    "text",
    [
        "add<arg_key>x</arg_key><arg_value>2<arg_key>y</arg_key><arg_value>3</arg_value>",
        "add<arg_key>x</arg_key><arg_value>2</arg_value><arg_key>y</arg_key><arg_value>3",
        "add\n<arg_key>x</arg_key>\n2</arg_value>\n<arg_key>y</arg_key>\n3</arg_value>\n",
        "add<arg_key>x<arg_value>2</arg_value><arg_key>y<arg_value>3\n",
    ],
)
def test_tags_of_glm_may_be_missing(name: str, text: str) -> None:
    schema = {"properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}
    add = Tool(function=Function(name="add", parameters=schema))
    assert calls(name, text, [add]) == [("add", {"x": 2, "y": 3}, None)]
    parser = FORMATS[name].make_parser([add])
    fragments = [piece for letter in text for piece in parser.push(letter)] + parser.end()[0]
    assert json.loads("".join(piece.arguments for piece in fragments)) == {"x": 2, "y": 3}


def test_a_value_of_glm_that_the_model_did_not_finish_is_no_call() -> None:
    text = "get_weather<arg_key>city</arg_key><arg_value>Par"
    parser = reader_of("glm45")
    assert not any(piece.complete for piece in [*parser.push(text), *parser.end(closed=True, marked=False)[0]])


def test_a_value_of_glm_may_quote_the_tags_of_other_parameters() -> None:
    text = "get_weather<arg_key>city</arg_key><arg_value>a<arg_key>b</arg_key><arg_value>c</arg_value>"
    assert calls("glm45", text) == [("get_weather", {"city": "a<arg_key>b</arg_key><arg_value>c"}, None)]


def test_a_repeated_tag_of_minimax_m3_is_an_array() -> None:
    schema = {"properties": {"days": {"type": "array", "items": {"type": "integer"}}, "city": {"type": "string"}}}
    plan = Tool(function=Function(name="plan", parameters=schema))
    tags = "<days>1</days><city>Rome</city><days>2</days><city>Oslo</city><any>a</any><any>b</any>"
    text = f'<invoke name="plan">{tags}</invoke>'.replace("<", "]<]minimax[>[<")
    assert calls("minimax_m3", text, [plan]) == [("plan", {"days": [1, 2], "city": "Oslo", "any": ["a", "b"]}, None)]


NOTE = Tool(function=Function(name="note", parameters={"properties": {"text": {"type": "string"}, "line": {}}}))
QUOTE = '<|"|>'


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ('{text:"a, line: b"}', {"text": "a, line: b"}),
        ('{text:"a \\"b\\"\\n",line:1}', {"text": 'a "b"\n', "line": 1}),
        (r'{text:"C:\users\x"}', {"text": r"C:\users\x"}),
        (r"{text:'\w: it\'s',line:1}", {"text": r"\w: it's", "line": 1}),
        (f"{{text:'a'{QUOTE},line:['b']}}", {"text": "a", "line": ["b"]}),
        (f"{{line:1,text:{QUOTE}ls }}", {"line": 1, "text": "ls "}),
        (f"{{text:{QUOTE}ls", {"text": "ls"}),
        (f"{{text:{QUOTE}ls{QUOTE} ", {"text": "ls"}),
        ("{text:\n# A, b (c.md)\n", {"text": "\n# A, b (c.md)"}),
        ("{text: a, b: {c}, line:2}", {"text": "a, b: {c}", "line": 2}),
    ],
)
def test_strings_of_gemma_4_may_lack_quotes_or_have_others(arguments: str, found: Any) -> None:
    assert calls("gemma4", f"call:note{arguments}", [NOTE]) == [("note", found, None)]
    parser = FORMATS["gemma4"].make_parser([NOTE])
    fragments = [piece for letter in f"call:note{arguments}" for piece in parser.push(letter)] + parser.end()[0]
    assert json.loads("".join(piece.arguments for piece in fragments)) == found


@pytest.mark.parametrize("text", [f"call:note{{text:{QUOTE}rm -r a", "call:note{text:rm -r a", "call:note{line:1"])
def test_an_argument_that_the_model_did_not_finish_is_no_call(text: str) -> None:
    parser = FORMATS["gemma4"].make_parser([NOTE])
    fragments = parser.push(text)
    last, rest = parser.end(closed=True, marked=False)
    assert rest == text
    assert not any(piece.complete for piece in [*fragments, *last])


@for_each([*product(FORMATS, ["a", "{", "[", "(", " ", '"', "<", "call:f{a:", "f[ARGS]", "<function=f>", "f(", "\\"])])
def test_long_text_without_a_call_is_text(case: tuple[str, str]) -> None:
    name, unit = case
    reader = reader_of(name)
    text = unit * 2000
    for at in range(0, len(text), 200):
        reader.push(text[at : at + 200])
    fragments, rest = reader.end()
    assert not any(fragment.complete for fragment in fragments)
    assert rest == text


@for_each([*product(FORMATS, [50, 900, 1000, 20000])])
def test_deep_arguments_are_read_or_are_text(case: tuple[str, int]) -> None:
    name, depth = case
    opening = {"function_gemma": "call:add{tags:", "gemma4": "call:add{tags:", "pythonic": "[add(tags="}.get(name, "")
    opening = opening or {"gemma3_code": "add(tags=", "qwen3_coder": "<function=add><parameter=tags>"}.get(name, "")
    opening = opening or '{"name": "add", "arguments": {"tags": '
    reader = reader_of(name)
    text = opening + "[" * depth + "]" * depth + "}})]</parameter></function>"
    fragments = reader.push(text)
    last, rest = reader.end()
    assert rest == text or any(fragment.complete for fragment in fragments + last)
