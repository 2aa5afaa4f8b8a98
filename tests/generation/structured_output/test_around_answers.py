"""Forced content and calls have around them what models were trained to write: white space, markers and headers."""

from typing import Any

import pytest
from msgspec.structs import replace

from lmwire_protocol import Chat
from lmwire_protocol.formats import ChoiceFormat, Format, JsonSchemaFormat, LarkFormat, RegexFormat
from lmwire_protocol.messages import Message
from lmwire_worker.output_parsing import Syntax, start_state
from lmwire_worker.tool_parsers import FORMATS
from support.runners.constrained import Speaker, tool, write_tokenizer

SPECIAL = [
    *("<think>", "</think>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    *("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>"),
    *("<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", "<|begin|>", "<|content|>"),
]
NUMBER = JsonSchemaFormat({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
LOOK = tool("look", path={"type": "string"}, deep={"type": "boolean"})
GLM = """<tool_call>look
<arg_key>path</arg_key>
<arg_value>a</arg_value>
<arg_key>deep</arg_key>
<arg_value>true</arg_value>
</tool_call>"""
CODER = """<tool_call>
<function=look>
<parameter=path>
a
</parameter>
<parameter=deep>
True
</parameter>
</function>
</tool_call>"""


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Speaker:
    return Speaker(write_tokenizer(tmp_path_factory.mktemp("model"), SPECIAL))


def syntax_of(speaker: Speaker, form: str | None, *, content_markers: bool = False) -> Syntax:
    """The syntax of a model that reasons between `<think>` and `</think>`, or of a family of messages."""
    found = Syntax.of(speaker.tokenizer, "gpt_oss" if form == "harmony" else "", FORMATS[form] if form else None)
    return found if content_markers else replace(found, content_markers=())


def writes(speaker: Speaker, request: Chat, syntax: Syntax, answer: str, opening: str = "", **fields: Any) -> bool:
    """Return whether a model may write this whole answer."""
    thinking = start_state(syntax, opening) == "reasoning"
    constraint = speaker.grammars.make_constraint(request, syntax, thinking, opening=opening, **fields)
    assert constraint is not None and constraint.matcher is not None
    tokens = speaker.tokenizer.encode(answer, add_special_tokens=False)
    return constraint.matcher.consume_tokens(tokens) and constraint.matcher.is_accepting()


def chat(**fields: Any) -> Chat:
    return Chat(messages=[Message(role="user", content="x")], **fields)


@pytest.mark.parametrize("space", ["", "\n", "\n\n", " "])
def test_white_space_may_follow_reasoning_before_content_and_calls(speaker: Speaker, space: str) -> None:
    for opening, before in (("<think>", "So.</think>"), ("", "<think>So.</think>")):
        assert writes(speaker, chat(format=NUMBER), syntax_of(speaker, None), f'{before}{space}{{"a":1}}', opening)
        called = chat(tools=[LOOK], tool_choice="required")
        assert writes(speaker, called, syntax_of(speaker, "glm45"), f"{before}{space}{GLM}", opening)


def test_white_space_is_bounded_so_that_the_answer_comes(speaker: Speaker) -> None:
    assert not writes(speaker, chat(format=NUMBER), syntax_of(speaker, None), '</think>\n\n\n\n\n{"a":1}', "<think>")


@pytest.mark.parametrize(
    ("opening", "is_allowed"), [("<assistant>", True), ("<assistant>\n", False), ("<think>\n\n</think>", True)]
)
def test_white_space_may_open_content_where_the_prompt_has_none_before_it(
    speaker: Speaker, opening: str, is_allowed: bool
) -> None:
    assert writes(speaker, chat(format=NUMBER), syntax_of(speaker, None), '{"a":1}', opening)
    assert writes(speaker, chat(format=NUMBER), syntax_of(speaker, None), '\n{"a":1}', opening) == is_allowed


@pytest.mark.parametrize(
    ("format", "drops"),
    [
        (NUMBER, True),
        (ChoiceFormat(["yes", "no"]), True),
        (ChoiceFormat(["yes", " no"]), False),
        (RegexFormat("[a-z]+"), True),
        (RegexFormat("\\s*[a-z]+"), False),
        (LarkFormat('start: "\\n"? "yes"'), False),
    ],
)
def test_white_space_before_content_is_dropped_unless_the_format_may_have_it(
    speaker: Speaker, format: Format, drops: bool
) -> None:
    assert speaker.constraint(chat(format=format)).drops_space is drops
    assert speaker.constraint(chat(format=format)).fork().drops_space is drops


def test_white_space_after_a_prefix_is_content(speaker: Speaker) -> None:
    request = chat(format=RegexFormat("yes( or no)?"), prefix="yes")
    assert not speaker.constraint(request).drops_space


def test_markers_around_content_may_stand_around_a_format(speaker: Speaker) -> None:
    syntax = syntax_of(speaker, None, content_markers=True)
    assert writes(speaker, chat(format=NUMBER), syntax, '</think><|START_RESPONSE|>{"a":1}<|END_RESPONSE|>', "<think>")
    assert writes(speaker, chat(format=NUMBER), syntax, '</think>{"a":1}', "<think>")


@pytest.mark.parametrize(
    ("form", "header"),
    [("harmony", "<|channel|>final<|message|>"), ("solar_open", "<|content|>"), ("kimi_k3", "<|open|>response<|sep|>")],
)
def test_a_header_that_the_prompt_has_is_not_written_again(speaker: Speaker, form: str, header: str) -> None:
    request, syntax = chat(format=NUMBER, reasoning="off"), syntax_of(speaker, form)
    assert writes(speaker, request, syntax, f'{header}{{"a":1}}', "<assistant>")
    assert writes(speaker, request, syntax, '{"a":1}', f"<assistant>{header}")
    assert not writes(speaker, request, syntax, f'{header}{{"a":1}}', f"<assistant>{header}")


def test_a_family_may_close_empty_content_before_its_calls(speaker: Speaker) -> None:
    request, syntax = chat(tools=[LOOK], tool_choice="required", reasoning="off"), syntax_of(speaker, "kimi_k3")
    calls = (
        '<|open|>tools<|sep|><|open|>call tool="look" index="1"<|sep|>'
        '<|open|>argument key="path" type="string"<|sep|>a<|close|>argument<|sep|>'
        '<|open|>argument key="deep" type="boolean"<|sep|>true<|close|>argument<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|>"
    )
    start, end = "<|open|>response<|sep|>", "<|close|>response<|sep|>"
    assert writes(speaker, request, syntax, calls, "<assistant>")
    assert writes(speaker, request, syntax, start + end + calls, "<assistant>")
    assert writes(speaker, request, syntax, end + calls, f"<assistant>{start}")


@pytest.mark.parametrize("word", ["true", "True"])
def test_a_boolean_between_tags_may_be_jsons_or_pythons_word(speaker: Speaker, word: str) -> None:
    request = chat(tools=[LOOK], tool_choice="required")
    assert writes(speaker, request, syntax_of(speaker, "qwen3_coder"), CODER.replace("True", word))


@pytest.mark.parametrize(
    "arguments",
    [
        'path="a", kind="file", flags=[true, false]',
        "path='a', kind='file', flags=[True, False]",
        "path='it is \"a\"', kind='file', flags=[]",
    ],
)
def test_strings_and_lists_in_python_may_be_written_as_python_does(speaker: Speaker, arguments: str) -> None:
    flags: dict[str, Any] = {"type": "array", "items": {"type": "boolean"}}
    find = tool("find", path={"type": "string"}, kind={"type": "string", "enum": ["file", "folder"]}, flags=flags)
    request, syntax = chat(tools=[find], tool_choice="required"), syntax_of(speaker, "pythonic")
    assert writes(speaker, request, syntax, f"<|tool_call_start|>[find({arguments})]<|tool_call_end|>")
    other = arguments.replace("file", "link")
    assert not writes(speaker, request, syntax, f"<|tool_call_start|>[find({other})]<|tool_call_end|>")


def test_the_line_break_between_two_parameters_may_be_missing(speaker: Speaker) -> None:
    request, syntax = chat(tools=[LOOK], tool_choice="required"), syntax_of(speaker, "glm45")
    assert writes(speaker, request, syntax, GLM)
    assert writes(speaker, request, syntax, GLM.replace("</arg_value>\n<arg_key>", "</arg_value><arg_key>"))
