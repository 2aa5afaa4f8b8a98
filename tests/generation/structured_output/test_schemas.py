"""Keywords of JSON Schema: the answer obeys each of them, or the request is refused. No keyword is ignored."""

import json
from typing import Any

import jsonschema
import pytest

from lmwire_protocol import Generate, RequestError
from lmwire_protocol.formats import JsonSchemaFormat
from support.runners.constrained import Speaker, write_tokenizer

COUNT = {"type": "integer", "minimum": 0, "maximum": 99}
FLAG = {"type": "boolean"}
HELD: list[dict[str, Any]] = [
    {"const": {"b": [1, "x", None], "a": 1.5}},
    {"enum": [3, 7, 9], "minimum": 5},
    {"enum": ["abc", "zz"], "pattern": "^z"},
    {"enum": [1, "a", None], "type": ["string", "null"]},
    {"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 50},
    {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    {"type": "string", "minLength": 3, "maxLength": 5, "pattern": "^[ab]*$"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "ipv4"},
    {"type": "array", "items": COUNT, "minItems": 2, "maxItems": 3},
    {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": False},
    {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": FLAG},
    {"type": "object", "patternProperties": {"^a": FLAG}, "additionalProperties": False},
    {"type": "object", "properties": {"a": True, "b": False}, "required": ["a"], "additionalProperties": False},
    {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": FLAG}, "additionalProperties": False}]},
    {"anyOf": [{"type": "null"}, COUNT]},
    {"oneOf": [{"type": "null"}, COUNT]},
    {"$ref": "#/$defs/word", "maxLength": 3, "$defs": {"word": {"type": "string", "minLength": 2}}},
    {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False},
]
REFUSED: list[dict[str, Any]] = [
    {"not": {"type": "null"}},
    {"if": {"type": "null"}, "then": {}},
    {"type": "array", "uniqueItems": True},
    {"type": "array", "contains": {"type": "null"}},
    {"type": "object", "propertyNames": {"maxLength": 3}},
    {"type": "object", "dependentRequired": {"a": ["b"]}},
    {"type": "object", "unevaluatedProperties": False},
    {"$dynamicRef": "#a"},
    {"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]},
    {"$ref": "https://example.org/schema"},
]


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Speaker:
    return Speaker(write_tokenizer(tmp_path_factory.mktemp("model"), []))


@pytest.mark.parametrize("schema", HELD, ids=json.dumps)
def test_answers_follow_each_supported_schema(speaker: Speaker, schema: dict[str, Any]) -> None:
    for seed in range(6):
        answer = json.loads(speaker.say(Generate(prompt="x", format=JsonSchemaFormat(schema)), seed))
        jsonschema.validate(answer, schema, format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize("schema", REFUSED, ids=json.dumps)
def test_an_unsupported_schema_is_refused(speaker: Speaker, schema: dict[str, Any]) -> None:
    for nested, path in ((schema, "format.schema"), ({"type": "array", "items": schema, "minItems": 1}, "items")):
        with pytest.raises(RequestError) as refusal:
            speaker.constraint(Generate(prompt="x", format=JsonSchemaFormat(nested)))
        assert refusal.value.code == "invalid_request"
        assert path in (refusal.value.field or "")
