"""The error sentences for invalid lines. The vectors test their codes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmwire_protocol import CODES, COMMANDS, RequestError, decode_command, decode_object, recover_id, usable_id
from lmwire_protocol.framing import Line


def refusal(line: str) -> RequestError:
    with pytest.raises(RequestError) as caught:
        decode_command(decode_object(Line(line.encode())))
    return caught.value


SURROGATE = "holds the lone surrogate U+{}, which is not valid text"


@pytest.mark.parametrize(
    ("line", "field", "sentence"),
    [
        (rb'{"cmd":"generate","prompt":"\ud800"}', "prompt", f"`prompt` {SURROGATE.format('D800')}"),
        (rb'{"cmd":"generate","prompt":"a\uDFFFbcdefghijkl"}', "prompt", f"`prompt` {SURROGATE.format('DFFF')}"),
        (b'{"cmd":"generate","prompt":"\xed\xa0\x80"}', "prompt", f"`prompt` {SURROGATE.format('D800')}"),
        (
            rb'{"cmd":"chat","messages":[{"role":"user","content":[{"text":"\ud83d\ude42"},{"text":"\ud83d"}]}]}',
            "messages[0].content[1].text",
            f"`messages[0].content[1].text` {SURROGATE.format('D83D')}",
        ),
        (rb'{"cmd":"ping","\ud800":1}', None, f"the name of a field {SURROGATE.format('D800')}"),
    ],
)
def test_a_lone_surrogate_is_named_with_its_field(line: bytes, field: str | None, sentence: str) -> None:
    with pytest.raises(RequestError) as caught:
        decode_object(Line(line))
    assert (caught.value.code, caught.value.field) == ("parse_error", field)
    assert caught.value.message.startswith(f"{sentence}; write a character beyond U+FFFF as a pair of escapes")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (rb'{"prompt":"\ud800"', "not JSON"),
        (rb'{"prompt":"\ud83d\ude42', "truncated"),
        (rb'{"prompt":"\ud8', "truncated"),
        (b'{"prompt":"\xed\xa0\x80\xff"}', "not UTF-8"),
        (b"[" * 50_000 + rb'"\ud800"', "nested too deep"),
    ],
)
def test_a_line_with_another_fault_is_not_called_a_surrogate(line: bytes, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence) as caught:
        decode_object(Line(line))
    assert (caught.value.code, caught.value.field) == ("parse_error", None)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"cmd":"generate"}', "`prompt`: is required; it is a string or a list of 1 to 1,048,576 items"),
        ('{"cmd":"generate","prompt":"a","temprature":1}', "`temprature`: unknown field; did you mean `temperature`?"),
        ('{"cmd":"generate","prompt":"a","top_p":2}', "`top_p`: must be a number above 0, up to 1, not 2"),
        ('{"cmd":"generate","prompt":"a","top_k":"x"}', '`top_k`: must be an integer from 0 to 2^53-1, not "x"'),
        ('{"cmd":"generate","prompt":"a","n":17}', "`n`: must be an integer from 1 to 16, not 17"),
        (
            '{"cmd":"generate","prompt":"a","logit_bias":{"4":1,"5":101,"x":1}}',
            "`logit_bias.5`: must be a number from -100 to 100, not 101",
        ),
        (
            '{"cmd":"generate","prompt":"a","logit_bias":{"4":1,"a.b":1}}',
            "`logit_bias.a.b`: its name must be an integer from 0 to 2^53-1",
        ),
        (
            '{"cmd":"generate","prompt":"a","format":{"type":"xml"}}',
            '`format.type`: must be "json_object", "json_schema", "regex", "lark" or "choice", not "xml"',
        ),
        (
            '{"cmd":"generate","prompt":"a","format":{}}',
            '`format.type`: is required; it is "json_object", "json_schema", "regex", "lark" or "choice"',
        ),
        (
            '{"cmd":"generate","prompt":"a","format":"json"}',
            "`format`: must be an object of the type json_object, json_schema, regex, lark or choice",
        ),
        (
            '{"cmd":"chat","messages":[{"role":"narrator","content":"a"}]}',
            '`messages[0].role`: must be "assistant", "developer", "system", "tool" or "user", not "narrator"',
        ),
        (
            '{"cmd":"chat","messages":[{"role":"assistant","tool_calls":[{"id":"1","index":0}]}]}',
            "`messages[0].tool_calls[0].index`: unknown field; there are id, name, arguments, type, function",
        ),
        (
            '{"cmd":"chat","messages":[{"role":"user","content":"a"}],"tool_choice":"maybe"}',
            '`tool_choice`: must be "auto", "none", "required" or an object, not "maybe"',
        ),
        ('{"cmd":"tokenize","prompt":"a","prefix":"b"}', "`prefix`: goes with `messages`, not with `prompt`"),
        ('{"cmd":"tokenize","token_ids":[1],"prefix":"b"}', "`prefix`: goes with `messages`, not with `token_ids`"),
        (
            '{"cmd":"tokenize","token_ids":[1],"add_special_tokens":false}',
            "`add_special_tokens`: goes with `prompt`, not with `token_ids`",
        ),
        ('{"cmd":"tokenize","prompt":"a","reasoning":"on"}', "`reasoning`: goes with `messages`, not with `prompt`"),
        ('{"cmd":"cancel","all":false}', "`all`: must be true, not false"),
        ('{"cmd":"cancel"}', "`target`: give exactly one of `target` and `all`"),
        ('{"cmd":"hello","protocol":[2,1]}', "`protocol`: the first version must not be above the second"),
        ('{"cmd":"qiut"}', "unknown command 'qiut'; did you mean `quit`?"),
        ("[]", "the line is JSON but not an object: list"),
        ('\ufeff{"cmd":"ping"}', "remove the byte order mark"),
    ],
)
def test_an_error_names_the_problem_and_the_valid_values(line: str, sentence: str) -> None:
    assert sentence in refusal(line).message


def test_a_map_that_is_too_long_is_not_searched_for_its_first_wrong_entry() -> None:
    biases = {**{str(token): 1 for token in range(1024)}, "wrong": "wrong"}
    error = refusal(json.dumps({"cmd": "generate", "prompt": "a", "logit_bias": biases}))
    assert error.message == "`logit_bias`: must be an object of 0 to 1,024 members, not an object of 1025"


def test_a_line_without_a_command_names_the_commands() -> None:
    message = refusal("{}").message
    assert all(name in message for name in COMMANDS)


@pytest.mark.parametrize("depth", [100, 400, 600, 900, 1100, 10_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_of_any_depth_is_refused_and_never_overflows(depth: int, opening: str, closing: str) -> None:
    nested = opening * (depth - 1) + "1" + closing * (depth - 1)
    error = refusal(f'{{"cmd":"ping","deep":{nested}}}')
    assert error.code == "invalid_request" or (depth > 100 and error.code == "parse_error")


def test_nesting_of_a_hundred_is_read() -> None:
    assert decode_object(Line(b'{"deep":' + b"[" * 99 + b"]" * 99 + b"}"))


@given(st.binary())
def test_any_bytes_are_an_object_or_a_refusal(data: bytes) -> None:
    try:
        fields = decode_object(Line(data))
    except RequestError as error:
        assert error.code == "parse_error"
    else:
        assert isinstance(fields, dict)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted({name for command in COMMANDS.values() for name in command.__struct_fields__})
OBJECTS = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=8), JSON, max_size=4)


BIASES = st.fixed_dictionaries({"logit_bias": st.dictionaries(st.text(max_size=4) | st.integers().map(str), JSON)})


@given(st.sampled_from(sorted(COMMANDS)), OBJECTS | BIASES)
def test_any_fields_are_a_command_or_a_refusal_that_names_one(name: str, fields: dict[str, object]) -> None:
    try:
        command = decode_command({**fields, "id": "1", "cmd": name})
    except RequestError as error:
        assert error.code == "invalid_request"
        assert error.field is not None
        assert error.code in CODES
    else:
        assert command.name == name


@given(st.text(max_size=40))
def test_an_id_that_is_the_first_member_is_recovered_from_a_broken_line(id: str) -> None:
    assert recover_id(b'{"id":' + json.dumps(id).encode() + b',"cmd":') == (id if usable_id(id) else None)


@pytest.mark.parametrize("line", [b'{"cmd":"ping","id":"1"', b'["id":"1"', b'{"id":1', b'{"id":"', b'{"id":"\xff",'])
def test_no_id_is_recovered_from_elsewhere(line: bytes) -> None:
    assert recover_id(line) is None


def test_the_escaped_form_of_the_longest_id_is_recovered_from_an_over_long_line() -> None:
    escaped = b"\\u0061" * 128
    assert recover_id(b'{ "id" : "' + escaped + b'", "cmd"' + b"x" * 200) == "a" * 128
