"""Answers in a required format: whatever text the model prefers, its answer has that format."""

import json
import re
import sys
from typing import Any

import jsonschema
import llguidance
import pytest

from lmwire_protocol import Chat, Generate, RequestError
from lmwire_protocol.formats import (
    ChoiceFormat,
    Format,
    JsonObjectFormat,
    JsonSchemaFormat,
    LarkFormat,
    RegexFormat,
)
from lmwire_protocol.messages import Message
from support.runners.constrained import Speaker, write_tokenizer

SEEDS = range(6)
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
        "mail": {"type": ["string", "null"], "pattern": "^[a-z]{1,4}@[a-z]{1,4}$"},
        "next": {"$ref": "#/$defs/point"},
    },
    "required": ["name", "age", "tags", "mail"],
    "additionalProperties": False,
    "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
}


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Speaker:
    return Speaker(write_tokenizer(tmp_path_factory.mktemp("model"), ["<think>", "</think>"]))


def generate(format: Format) -> Generate:
    return Generate(prompt="x", format=format)


def chat(**fields: Any) -> Chat:
    return Chat(messages=[Message(role="user", content="x")], **fields)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_answer_follows_its_json_schema(speaker: Speaker, seed: int) -> None:
    answer = speaker.say(generate(JsonSchemaFormat(PERSON)), seed)
    jsonschema.validate(json.loads(answer), PERSON)


@pytest.mark.parametrize("seed", SEEDS)
def test_json_is_written_without_spaces_between_its_parts(speaker: Speaker, seed: int) -> None:
    answer = speaker.say(generate(JsonSchemaFormat(PERSON)), seed)
    outside_strings = re.sub(r'"(?:[^"\\]|\\.)*"', "", answer)
    assert not re.search(r"\s", outside_strings)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_json_object_is_an_object(speaker: Speaker, seed: int) -> None:
    assert isinstance(json.loads(speaker.say(generate(JsonObjectFormat()), seed)), dict)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_regular_expression_matches_as_a_whole(speaker: Speaker, seed: int) -> None:
    pattern = r"(GET|PUT) /[a-z]{1,8}(\.html)?\n"
    assert re.fullmatch(pattern, speaker.say(generate(RegexFormat(pattern)), seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_an_answer_follows_a_lark_grammar(speaker: Speaker, seed: int) -> None:
    sums = 'start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]{1,3}/'
    answer = speaker.say(generate(LarkFormat(sums)), seed)
    assert re.fullmatch(r"[0-9]{1,3}(\+[0-9]{1,3})*", answer)


def test_a_choice_is_one_of_the_choices_and_can_be_each_of_them(speaker: Speaker) -> None:
    choices = ["ka", "kalo", 'é "quoted"\n/slashed\\', "漢字"]
    assert {speaker.say(generate(ChoiceFormat(choices)), seed) for seed in range(40)} == set(choices)


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"not": {"type": "string"}}, "format.schema.properties.x.not"),
        ({"type": "array", "uniqueItems": True}, "format.schema.properties.x.uniqueItems"),
        ({"type": "array", "items": {"type": "wrong"}}, "format.schema.properties.x.items.type"),
        ({"anyOf": [{"type": "null"}, {"if": {}}]}, "format.schema.properties.x.anyOf[1].if"),
        ({"type": "string", "format": "unheard-of"}, "format.schema.properties.x.format"),
        ({"type": "string", "pattern": "("}, "format.schema.properties.x.pattern"),
        ({"$ref": "#/$defs/nowhere"}, "format.schema.properties.x.$ref"),
        ({"$ref": "#/$defs/bad"}, "format.schema.$defs.bad.contains"),
        ({"enum": ["<|im_start|>"]}, "format.schema.properties.x.enum"),
    ],
)
def test_a_schema_that_cannot_be_enforced_is_refused_by_the_path_of_that_part(
    speaker: Speaker, part: dict[str, Any], path: str
) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "string"}, "x": part}, "$defs": {"bad": {"contains": {}}}}
    with pytest.raises(RequestError) as refusal:
        speaker.constraint(generate(JsonSchemaFormat(schema)))
    assert (refusal.value.code, refusal.value.field) == ("invalid_request", path)


@pytest.mark.parametrize(
    ("format", "path"),
    [
        (RegexFormat("(a"), "format.pattern"),
        (RegexFormat("(?=a)b"), "format.pattern"),
        (RegexFormat(r"[^\s\S]"), "format.pattern"),
        (LarkFormat("start: unknown_rule"), "format.grammar"),
        (LarkFormat("no grammar at all ("), "format.grammar"),
        (ChoiceFormat(["yes", "<|im_end|>"]), "format.choices[1]"),
    ],
)
def test_a_wrong_format_is_refused_by_its_path(speaker: Speaker, format: Format, path: str) -> None:
    with pytest.raises(RequestError) as refusal:
        speaker.constraint(generate(format))
    assert (refusal.value.code, refusal.value.field) == ("invalid_request", path)


def test_the_error_for_a_wrong_format_names_the_mistake(speaker: Speaker) -> None:
    with pytest.raises(RequestError, match=r"^`format.pattern`: regex parse error: unclosed group$"):
        speaker.constraint(generate(RegexFormat("(a")))
    with pytest.raises(RequestError, match=r"^`format.schema.pattern`: regex parse error: look-around, "):
        speaker.constraint(generate(JsonSchemaFormat({"type": "string", "pattern": "(?!a)"})))
    with pytest.raises(RequestError, match=r"^`format.schema.*no text satisfies it$"):
        speaker.constraint(generate(JsonSchemaFormat({"$ref": "#"})))


@pytest.mark.parametrize("reasoning", ["on", "off", None])
@pytest.mark.parametrize(
    ("format", "path"),
    [
        (LarkFormat("start: many\nmany: many many"), "format.grammar"),
        (RegexFormat(r"[^\s\S]"), "format.pattern"),
        (JsonSchemaFormat({"$ref": "#"}), "format.schema.$ref"),
    ],
    ids=["lark", "regex", "schema"],
)
def test_a_format_without_any_text_is_refused_before_the_answer(
    speaker: Speaker, format: Format, path: str, reasoning: Any
) -> None:
    with pytest.raises(RequestError, match=r"no text satisfies it$") as refusal:
        speaker.constraint(chat(format=format, reasoning=reasoning))
    assert refusal.value.field == path


def test_without_a_format_there_is_no_constraint(speaker: Speaker) -> None:
    assert speaker.grammars.make_constraint(Generate(prompt="x"), speaker.syntax, False) is None


def test_the_format_applies_after_the_reasoning(speaker: Speaker) -> None:
    answer = speaker.say(chat(format=JsonSchemaFormat(PERSON)), 1, thinking=True)
    reasoned, _, content = answer.partition("</think>")
    assert reasoned
    jsonschema.validate(json.loads(content), PERSON)


def test_with_reasoning_auto_a_mask_does_not_push_an_answer_into_reasoning(speaker: Speaker) -> None:
    """The first choice of these answers, all of whose tokens are equally likely, is not the marker."""
    answers = [speaker.say(chat(format=RegexFormat("[a-z]{3}")), seed) for seed in range(20)]
    assert all(re.fullmatch("[a-z]{3}", answer) for answer in answers)


def test_with_reasoning_off_a_formatted_answer_has_no_reasoning(speaker: Speaker) -> None:
    request = chat(format=RegexFormat("[a-z]{3}"), reasoning="off")
    assert all(re.fullmatch("[a-z]{3}", speaker.say(request, seed)) for seed in range(20))


def test_a_formatted_answer_continues_the_prefix(speaker: Speaker) -> None:
    prefix = '{"name":"ka'
    request = chat(format=JsonSchemaFormat(PERSON), prefix=prefix, reasoning="off")
    jsonschema.validate(json.loads(prefix + speaker.say(request)), PERSON)


def test_a_prefix_that_cannot_begin_the_format_is_refused(speaker: Speaker) -> None:
    with pytest.raises(RequestError) as refusal:
        speaker.constraint(chat(format=JsonSchemaFormat(PERSON), prefix="Sure:"))
    assert refusal.value.field == "prefix"


def test_a_chain_of_rules_that_could_end_the_process_is_refused(speaker: Speaker) -> None:
    rules = "\n".join(f"r{index}: r{index + 1}" for index in range(5000))
    links = {f"d{index}": {"$ref": f"#/$defs/d{index + 1}"} for index in range(5000)}
    for format in (
        LarkFormat(f'start: r0\n{rules}\nr5000: "a"'),
        JsonSchemaFormat({"$ref": "#/$defs/d0", "$defs": links}),
    ):
        with pytest.raises(RequestError, match="at most 1000"):
            speaker.constraint(generate(format))


def test_a_schema_that_is_nested_too_deep_is_refused(speaker: Speaker) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(3000):
        schema = {"type": "array", "items": schema}
    with pytest.raises(RequestError, match="nested too deep"):
        speaker.constraint(generate(JsonSchemaFormat(schema)))


def test_without_llguidance_a_format_is_unsupported_and_the_extra_is_named(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    bare = Speaker(speaker.tokenizer)
    for format in (JsonObjectFormat(), RegexFormat("a"), ChoiceFormat(["a"])):
        with pytest.raises(RequestError, match=r"lmwire\[worker\]") as refusal:
            bare.constraint(generate(format))
        assert refusal.value.code == "unsupported"


def test_a_grammar_is_compiled_once(speaker: Speaker, monkeypatch: pytest.MonkeyPatch) -> None:
    request = generate(RegexFormat("compiled once"))
    speaker.constraint(request)
    monkeypatch.setattr(llguidance, "LLMatcher", None)
    assert speaker.say(request) == "compiled once"
