"""Required tool calls: whatever text the model prefers, the parser of its format finds the calls in the answer."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import llguidance
import pytest

from lmwire_protocol import Chat, RequestError, Tool
from lmwire_protocol.formats import RegexFormat
from lmwire_protocol.messages import Function, Message, NamedTool
from lmwire_worker.generation.structured_output.tool_call_grammars import loosen_schema
from lmwire_worker.output_parsing import OutputParser, TextFragment, start_state
from lmwire_worker.tool_parsers import FORMATS, WrittenCall
from support.models.tool_samples import SAMPLE
from support.nightly import nightly_but
from support.runners.constrained import Speaker, tool, write_tokenizer

SPECIAL = {
    "mistral": ["[TOOL_CALLS]", "[ARGS]"],
    "kimi_k2": [
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
    ],
    "kimi_k3": ["<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"],
    "harmony": ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|constrain|>", "<|return|>"],
    "pythonic": ["<|tool_call_start|>", "<|tool_call_end|>"],
    "k2_horizon": ["<ifm|tool_calls>", "</ifm|tool_calls>"],
    "gemma4": ["<|tool_call>", "<tool_call|>", '<|"|>'],
    "function_gemma": ["<start_function_call>", "<end_function_call>", "<escape>"],
    "llama3_json": ["<|python_tag|>"],
    "muse_spark": ["<|start|>", "<|message|>", "<|eom|>", "<|eot|>"],
    "mistral_call_id": ["[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"],
    "mistral_nemo": ["[TOOL_CALLS]"],
    "deepseek_v3": [
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁call▁end｜>",
        "<｜tool▁sep｜>",
    ],
    "command_r7b": ["<|START_ACTION|>", "<|END_ACTION|>"],
    "solar_open": ["<|begin|>", "<|content|>", "<|end|>", "<|think|>", "<|tool_calls|>", "<|tool_call:begin|>"],
}
"""Markers that are special tokens in models of that format."""
PLAIN = [
    "<tool_call>",
    "</tool_call>",
    "</parameter>",
    "</param>",
    "</arg_value>",
    "</longcat_arg_value>",
    "</ifm|arg_value>",
    "</arg_value:opensource>",
    "</tool_calls:opensource>",
    "</｜DSML｜parameter>",
    "</steptml:parameter>",
    "</atem:parameter>",
    "]<]minimax[>[",
]
"""Tokens that stand for their text, as some models have them, so that random text comes to an end."""
TOOLS = [
    tool(
        city={"type": "string", "minLength": 1, "maxLength": 12},
        unit={"type": "string", "enum": ["celsius", "kelvin"]},
        days={"type": "integer", "minimum": 1, "maximum": 14},
        detailed={"type": "boolean"},
    ),
    Tool(
        function=Function(
            name="draw",
            parameters={
                "type": "object",
                "properties": {
                    "points": {
                        "type": "array",
                        "items": {"type": "number", "minimum": -9, "maximum": 9},
                        "minItems": 1,
                        "maxItems": 3,
                    },
                    "note": {"type": "string"},
                    "at": {
                        "type": "object",
                        "properties": {"x": {"type": "integer"}},
                        "required": ["x"],
                        "additionalProperties": False,
                    },
                },
                "required": ["points"],
                "additionalProperties": False,
            },
        )
    ),
    Tool(function=Function(name="now")),
]
SEEDS = range(4)
MORE_SEEDS = (range(5), range(5, 20), range(20, 40))
"""Seeds by turns: the later ones speak only where the first ones leave a kind of answer out."""
OPENINGS = {"functionary_v3_2": ">>>"}
"""The prompt's part of a turn, in families that need it."""
TEXT_MARKERS = ("minicpm5", "gemma3_code", "llama3_json")
"""Formats whose calls start with text that random text hardly ever holds."""

SpeakerOf = Callable[[str], Speaker]


@pytest.fixture(scope="session")
def speaker_of(tmp_path_factory: pytest.TempPathFactory) -> SpeakerOf:
    speakers: dict[str, Speaker] = {}

    def speaker_of(name: str) -> Speaker:
        if name not in speakers and name not in SPECIAL and name != "json_tools":
            speakers[name] = speaker_of("json_tools").in_format(FORMATS[name])
        if name not in speakers:
            folder = tmp_path_factory.mktemp(name)
            tokenizer = write_tokenizer(folder, SPECIAL.get(name, ()), PLAIN)
            if name == "harmony":
                tokenizer.eos_token_ids = set(tokenizer.encode("<|return|><|call|>", add_special_tokens=False))
            speakers[name] = Speaker(tokenizer, FORMATS[name], "gpt_oss" if name == "harmony" else "llama")
        return speakers[name]

    return speaker_of


def chat(**fields: Any) -> Chat:
    fields.setdefault("tools", TOOLS)
    return Chat(messages=[Message(role="user", content="x")], **fields)


@dataclass
class Read:
    """A parsed answer."""

    reasoning: str = ""
    content: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)


def read(speaker: Speaker, text: str, tools: Sequence[Tool] = TOOLS, opening: str = "") -> Read:
    if speaker.syntax.tools is not None:
        opening = opening or OPENINGS.get(speaker.syntax.tools.name, "")
    answer = OutputParser(speaker.syntax, start_state(speaker.syntax, opening), tools, parses_calls=True)
    read, name, arguments = Read(), "", ""
    for part in answer.push(text) + answer.end(finished=True):
        if isinstance(part, TextFragment) and part.channel == "content":
            read.content += part.text
        elif isinstance(part, TextFragment):
            read.reasoning += part.text
        else:
            arguments = part.arguments if part.name else arguments + part.arguments
            name = part.name or name
            if part.complete:
                read.calls.append((name, json.loads(arguments)))
    return read


def check(call: tuple[str, Any], tools: Sequence[Tool] = TOOLS) -> None:
    """Validate a call's arguments with its tool's schema."""
    (schema,) = (tool.function.parameters for tool in tools if tool.function.name == call[0])
    jsonschema.validate(call[1], schema or {"type": "object", "maxProperties": 0})


@pytest.mark.parametrize("name", nightly_but(SAMPLE, FORMATS))
def test_a_required_call_is_read_back_and_its_schema_holds(speaker_of: SpeakerOf, name: str) -> None:
    request = chat(tool_choice="required", parallel_tool_calls=False, reasoning="off")
    called: set[str] = set()
    for seeds in MORE_SEEDS:
        for text in speaker_of(name).say_each(request, seeds):
            answer = read(speaker_of(name), text)
            (call,) = answer.calls
            check(call)
            called.add(call[0])
            assert not answer.content.strip()
        if len(called) > 1:
            break
    assert len(called) > 1


@pytest.mark.parametrize("name", nightly_but(SAMPLE, FORMATS))
def test_several_required_calls_are_read_back(speaker_of: SpeakerOf, name: str) -> None:
    tools = [tool(days={"type": "integer", "maximum": 9, "minimum": 0}), tool("now", soon={"type": "boolean"})]
    request = chat(tools=tools, tool_choice="required", reasoning="off")
    counts: set[int] = set()
    form = FORMATS[name]
    is_single = form.between_calls is None and form.between_sections is None
    for seeds in MORE_SEEDS:
        for text in speaker_of(name).say_each(request, seeds):
            answer = read(speaker_of(name), text, tools)
            for call in answer.calls:
                check(call, tools)
            assert not answer.content.strip()
            counts.add(len(answer.calls))
        if is_single or max(counts) > 1:
            break
    assert 0 not in counts
    assert name == "hy3" or (max(counts) > 1) == (not is_single)  # random text hardly ever begins its second call


NULLABLE = Tool(
    function=Function(
        name="find",
        parameters={
            "type": "object",
            "properties": {
                "word": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}], "default": None},
                "count": {"type": ["integer", "null"], "minimum": 1, "maximum": 9},
                "near": {"$ref": "#/$defs/Place"},
                "kind": {"enum": ["a", 1, None]},
                "tags": {"type": "array", "items": {"type": ["string", "null"], "maxLength": 3}, "maxItems": 2},
            },
            "required": ["word", "count", "near", "kind"],
            "additionalProperties": False,
            "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "integer", "maximum": 9, "minimum": 0}},
                                "required": ["x"], "additionalProperties": False}},
        },
    )
)  # fmt: skip


@pytest.mark.parametrize("name", ("qwen3_coder", "minimax_m2", "minimax_m3", "gemma4", "glm47", "kimi_k3", "pythonic"))
def test_parameters_may_have_several_types_in_every_notation(speaker_of: SpeakerOf, name: str) -> None:
    request = chat(tools=[NULLABLE], tool_choice="required", parallel_tool_calls=False, reasoning="off")
    for text in speaker_of(name).say_each(request, range(12)):
        calls = read(speaker_of(name), text, [NULLABLE]).calls
        assert len(calls) == 1, text
        check(calls[0], [NULLABLE])


def matcher_of(speaker: Speaker, request: Chat) -> Any:
    return speaker.constraint(request).matcher


def tokens_of(speaker: Speaker, text: str) -> list[int]:
    return speaker.tokenizer.encode(text, add_special_tokens=False)


NOTE = tool("note", text={"type": ["string", "null"]}, more={"type": "object"})
TEXT = '{"name": "note", "arguments": {"text": "a", "more": {}}}'
NATIVE = [
    ("json_tools", f"<tool_call>\n{TEXT}\n</tool_call>"),
    ("json_tools", f"<tool_call>\n{TEXT}</tool_call>"),
    ("json_tools", f"<tool_call>{TEXT}</tool_call>\n\n<tool_call>{TEXT}</tool_call>"),
    ("json_tools", f"\n\n<tool_call>\n{TEXT}\n</tool_call>"),
    ("json_tools", f"<tool_call>\n{TEXT}\n</tool_call>\n"),
    ("mistral", '[TOOL_CALLS]note[ARGS]{"text": "a", "more": {"b": [1, 2]}}'),
    ("mistral", '[TOOL_CALLS]note[ARGS]{"text":"a","more":{"b":[1,2]}}'),
    ("command_r", 'Action:\n```json\n[{"tool_name": "note", "parameters": {"text": "a", "more": {}}}]\n```'),
    (
        "qwen3_coder",
        "<tool_call>\n<function=note>\n<parameter=text>\nnull\n</parameter>\n<parameter=more>\n{}\n</parameter>\n"
        "</function>\n</tool_call>",
    ),
    (
        "qwen3_coder",
        "<function=note>\n<parameter=text>\n\n  a\n\n</parameter>\n<parameter=more>\n{}\n</parameter>\n</function>\n"
        "</tool_call>",
    ),
    (
        "glm45",
        "<tool_call>note\n<arg_key>text</arg_key>\n<arg_value>null</arg_value>\n<arg_key>more</arg_key>\n"
        "<arg_value>{}</arg_value>\n</tool_call>",
    ),
    (
        "glm45",
        "<tool_call>note<arg_key>text</arg_key><arg_value>a</arg_value><arg_key>more</arg_key><arg_value>{}</arg_value>"
        "</tool_call>",
    ),
    (
        "minicpm5",
        '<function name="note"><param name="text"><![CDATA[<b> & ]]></param><param name="more">{}</param></function>',
    ),
    ("pythonic", '<|tool_call_start|>[note(text="a", more={"b": True, "c": [None, 1]})]<|tool_call_end|>'),
    ("pythonic", '<|tool_call_start|>[note(text=None, more={"b": true})]<|tool_call_end|>'),
    ("gemma4", '<|tool_call>call:note{more:{b:true,c:[1,null]},text:<|"|>a<|"|>}<tool_call|>'),
    ("harmony", '<|channel|>commentary to=functions.note <|constrain|>json<|message|>{"text": "a", "more": {}}'),
    ("harmony", '<|channel|>analysis to=functions.note<|message|>{"text":"a","more":{}}'),
    ("harmony", ' to=functions.note<|channel|>commentary json<|message|>{"text":"a","more":{}}'),
    (
        "kimi_k3",
        "<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|>"
        '<|open|>call tool="note" index="1"<|sep|>'
        '<|open|>argument key="text" type="string"<|sep|>a<|close|>argument<|sep|>'
        '<|open|>argument key="more" type="object"<|sep|>{}<|close|>argument<|sep|><|close|>call<|sep|>'
        "<|close|>tools<|sep|>",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), NATIVE)
def test_a_required_call_may_be_written_as_models_do(speaker_of: SpeakerOf, name: str, text: str) -> None:
    request = chat(tools=[NOTE], tool_choice="required", reasoning="off")
    speaker = speaker_of(name)
    matcher, tokens = matcher_of(speaker, request), tokens_of(speaker, text)
    assert matcher.try_consume_tokens(tokens) == len(tokens)
    assert matcher.is_accepting()
    answer = read(speaker_of(name), text, [NOTE])
    assert not answer.content.strip()
    for call in answer.calls:
        check(call, [NOTE])
    assert answer.calls


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Speaker:
    return Speaker(write_tokenizer(tmp_path_factory.mktemp("model"), ["<think>", "</think>"], PLAIN))


@pytest.mark.parametrize(("name", "may_end"), [("qwen3_coder", True), ("glm45", True), ("json_tools", False)])
@pytest.mark.parametrize("opens", [True, False])
def test_a_required_call_may_end_reasoning_where_the_family_writes_so(
    thinker: Speaker, name: str, may_end: bool, opens: bool
) -> None:
    speaker = thinker.in_format(FORMATS[name])
    request = chat(tools=TOOLS[-1:], tool_choice="required")
    matcher: Any = speaker.constraint(request, thinking=opens).matcher
    call = FORMATS[name].write([WrittenCall("now", {})])
    tokens = tokens_of(speaker, f"{'' if opens else '<think>'}Look {call}")
    matcher.try_consume_tokens(tokens)
    assert matcher.is_accepting() == may_end


def test_muse_spark_may_begin_with_a_space(speaker_of: SpeakerOf) -> None:
    speaker = speaker_of("muse_spark")
    request = chat(tools=[tool("seek")], tool_choice="required")
    made = speaker.grammars.make_constraint(request, speaker.syntax, False, opening="<|start|>assistant")
    text = ' to=seek<|message|><atem:function_calls>\n<atem:invoke name="seek">\n</atem:invoke>\n</atem:function_calls>'
    tokens = tokens_of(speaker, text)
    assert made is not None
    matcher: Any = made.matcher
    assert matcher.try_consume_tokens(tokens) == len(tokens)
    assert matcher.is_accepting()


@pytest.mark.parametrize("name", ("json_tools", "qwen3_coder", "harmony"))
def test_a_named_function_is_called_once_and_no_other(speaker_of: SpeakerOf, name: str) -> None:
    request = chat(tool_choice=NamedTool(name="draw"))
    for text in speaker_of(name).say_each(request, SEEDS):
        (call,) = read(speaker_of(name), text).calls
        assert call[0] == "draw"
        check(call)


@pytest.mark.parametrize("name", ("json_tools", "mistral", "harmony", "kimi_k3", *TEXT_MARKERS))
def test_with_tool_choice_auto_a_strict_tools_schema_holds(speaker_of: SpeakerOf, name: str) -> None:
    tools = [
        tool(strict=True, days={"type": "integer", "maximum": 9}),
        tool("draw", x={"type": "string"}),
    ]
    speaker = speaker_of(name)
    contents = []
    calls = []
    for text in speaker.say_each(chat(tools=tools, reasoning="off"), range(30)):
        answer = read(speaker, text, tools)
        contents.append(answer.content)
        calls += answer.calls
    for call in calls:
        if call[0] == "get_weather":
            check(call, tools)
    assert any(contents)
    assert name in TEXT_MARKERS or {call[0] for call in calls} == {"get_weather", "draw"}


@pytest.mark.parametrize("name", ("json_tools", "mistral", "qwen3_coder", "glm47", "harmony", "kimi_k2", "gemma4"))
def test_with_a_format_and_tools_the_answer_is_calls_or_of_the_format(speaker_of: SpeakerOf, name: str) -> None:
    request = chat(format=RegexFormat("[a-z]{3}"), reasoning="off", parallel_tool_calls=False)
    kinds = set()
    for text in speaker_of(name).say_each(request, range(30)):
        answer = read(speaker_of(name), text)
        kinds.add(len(answer.calls))
        assert re.fullmatch("[a-z]{3}", answer.content) if not answer.calls else not answer.content.strip()
    assert kinds == {0, 1}


@pytest.mark.parametrize(
    ("parameters", "others"),
    [
        ({"type": "object", "properties": {}}, False),
        ({"properties": {"word": {"const": "ka"}}}, False),
        ({"type": "object", "properties": {}, "additionalProperties": {"const": 1}, "maxProperties": 1}, True),
        ({"type": "object", "patternProperties": {"^k": {"const": 1}}, "maxProperties": 1}, True),
    ],
)
def test_no_argument_is_written_that_the_schema_does_not_mention(
    speaker_of: SpeakerOf, parameters: dict[str, Any], others: bool
) -> None:
    tools = [Tool(function=Function(name="f", parameters=parameters))]
    request = chat(tools=tools, tool_choice="required", parallel_tool_calls=False, reasoning="off")
    speaker = speaker_of("json_tools")
    texts = speaker.say_each(request, SEEDS)
    names = {name for text in texts for _, arguments in read(speaker, text, tools).calls for name in arguments}
    assert bool(names - {"word"}) is others


def test_gemmas_arguments_are_in_the_order_of_the_signature_in_the_prompt(speaker_of: SpeakerOf) -> None:
    properties = {"days": {"type": "integer", "minimum": 1, "maximum": 9}, "city": {"enum": ["Paris", "Rome"]}}
    parameters = {"type": "object", "properties": properties, "required": ["city"], "additionalProperties": False}
    tools = [Tool(function=Function(name="get_weather", parameters=parameters))]
    request = chat(tools=tools, tool_choice="required", parallel_tool_calls=False, reasoning="off")
    speaker = speaker_of("gemma3_code")
    calls = [read(speaker, text, tools).calls[0] for text in speaker.say_each(request, range(20))]
    assert {tuple(arguments) for _, arguments in calls} == {("city",), ("city", "days")}
    assert list(loosen_schema(FORMATS["gemma3_code"], parameters)["properties"]) == ["city", "days"]


def test_with_tool_choice_none_only_the_format_counts(speaker_of: SpeakerOf) -> None:
    request = chat(format=RegexFormat("[a-z]{3}"), tool_choice="none", reasoning="off")
    assert all(re.fullmatch("[a-z]{3}", text) for text in speaker_of("json_tools").say_each(request, SEEDS))


def test_with_tool_choice_auto_tools_that_are_not_strict_constrain_nothing(speaker_of: SpeakerOf) -> None:
    speaker = speaker_of("json_tools")
    assert speaker.grammars.make_constraint(chat(), speaker.syntax, False) is None


def test_harmony_reasons_before_it_calls_and_before_it_answers(speaker_of: SpeakerOf) -> None:
    speaker = speaker_of("harmony")
    for request in (
        chat(tool_choice="required", reasoning="on"),
        chat(format=RegexFormat("[a-z]{3}"), tool_choice="none", reasoning="on"),
    ):
        answers = [read(speaker, text) for text in speaker.say_each(request, range(20))]
        assert {bool(answer.reasoning) for answer in answers} == {True, False}
        assert all(answer.calls or re.fullmatch("[a-z]{3}", answer.content) for answer in answers)


def test_a_required_call_is_refused_for_a_model_without_tool_calls(speaker_of: SpeakerOf) -> None:
    speaker = Speaker(speaker_of("json_tools").tokenizer)
    with pytest.raises(RequestError) as refusal:
        speaker.constraint(chat(tool_choice="required"))
    assert (refusal.value.code, refusal.value.field) == ("unsupported", "tool_choice")


def test_messages_of_muse_spark_go_to_the_function_or_the_user(speaker_of: SpeakerOf) -> None:
    tokenizer = speaker_of("muse_spark").tokenizer
    speaker = Speaker(tokenizer, FORMATS["muse_spark"])
    for request in (
        chat(tool_choice="required", parallel_tool_calls=False, reasoning="on"),
        chat(format=RegexFormat("[a-z]{3}"), tool_choice="none", reasoning="on"),
    ):
        answers = [read(speaker, text) for text in speaker.say_each(request, range(12))]
        assert {bool(answer.reasoning) for answer in answers} == {True, False}
        assert all(answer.calls or re.fullmatch("[a-z]{3}", answer.content) for answer in answers)


def test_an_unknown_message_format_cannot_be_constrained(speaker_of: SpeakerOf) -> None:
    speaker = speaker_of("harmony")
    speaker = Speaker(speaker.tokenizer, None, "gpt_oss")
    with pytest.raises(RequestError) as refusal:
        speaker.constraint(chat(format=RegexFormat("a"), tool_choice="none"))
    assert refusal.value.code == "unsupported"


def test_many_tools_are_compiled_once(speaker_of: SpeakerOf, monkeypatch: pytest.MonkeyPatch) -> None:
    speaker = speaker_of("json_tools")
    tools = [tool(f"draw_{number}", shape={"enum": [number]}) for number in range(100)]
    speaker.constraint(chat(tools=tools, tool_choice="required"))
    monkeypatch.setattr(llguidance, "LLMatcher", None)
    speaker.constraint(chat(tools=tools, tool_choice="required"))


def test_a_wrong_format_is_refused_beside_a_required_call(speaker_of: SpeakerOf) -> None:
    with pytest.raises(RequestError) as refusal:
        speaker_of("json_tools").constraint(chat(tool_choice="required", format=RegexFormat("(")))
    assert refusal.value.field == "format.pattern"


@pytest.mark.parametrize("name", ("json_tools", "qwen3_coder"))
def test_arguments_are_an_object_if_their_schema_has_no_type(speaker_of: SpeakerOf, name: str) -> None:
    tools = [
        Tool(function=Function(name="f", parameters={"properties": {"x": {"type": "boolean"}}, "required": ["x"]}))
    ]
    (call,) = read(
        speaker_of(name), speaker_of(name).say(chat(tools=tools, tool_choice=NamedTool(name="f"))), tools
    ).calls
    assert call[1]["x"] in (True, False)


@pytest.mark.parametrize(
    ("name", "schema", "path"),
    [
        ("json_tools", {"properties": {"x": {"not": {}}}}, "parameters.properties.x.not"),
        ("qwen3_coder", {"properties": {"x": {"type": "string", "pattern": "a"}}}, "parameters.properties.x.pattern"),
        ("json_tools", {"type": "string"}, "parameters.type"),
        ("minimax_m2", {"minProperties": 1}, "parameters.minProperties"),
        ("glm47", {"properties": {"<x>": {"type": "string"}}}, "parameters.properties.<x>"),
        ("pythonic", {"properties": {"class": {"type": "string"}}}, "parameters.properties.class"),
    ],
)
def test_parameters_that_cannot_be_enforced_are_refused_by_their_path(
    speaker_of: SpeakerOf, name: str, schema: dict[str, Any], path: str
) -> None:
    tools = [Tool(function=Function(name="f", parameters={"type": "object", **schema}))]
    with pytest.raises(RequestError) as refusal:
        speaker_of(name).constraint(chat(tools=tools, tool_choice="required"))
    assert refusal.value.field == f"tools[0].function.{path}"
