"""Answers as values of the type that `format` names."""

import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, field_validator
from pydantic.dataclasses import dataclass as pydantic_dataclass

from lmwire import InvalidAnswer, LmwireError
from lmwire.output_types import OutputType, split_format
from lmwire_protocol import JsonObjectFormat, JsonSchemaFormat
from support.process.fake_worker import fake, result, token
from support.protocol.both_clients import MakeWorker, on_one_client

ADA = '{"name":"Ada","age":36}'


class PersonModel(BaseModel):
    name: str
    age: int

    @field_validator("age")
    @classmethod
    def _not_too_old(cls, age: int) -> int:
        if age > 150:
            raise ValueError("nobody is that old")
        return age


class PersonStruct(msgspec.Struct):
    name: str
    age: Annotated[int, msgspec.Meta(le=150)]


class PersonDict(TypedDict):
    name: str
    age: int


@dataclass
class Person:
    name: str
    age: int


@pydantic_dataclass
class CheckedPerson:
    name: str
    age: int


@dataclass
class Street:
    number: complex


@dataclass
class Address:
    street: Street


@dataclass
class Household:
    people: list[Person] = field(default_factory=list[Person])


VALUES = [
    (PersonModel, PersonModel(name="Ada", age=36)),
    (CheckedPerson, CheckedPerson("Ada", 36)),
    (PersonStruct, PersonStruct("Ada", 36)),
    (PersonDict, {"name": "Ada", "age": 36}),
    (Person, Person("Ada", 36)),
]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def to_play(text: str) -> str:
    """Return the prompt for which the fake worker answers with a text."""
    played = (token("", text), result("", "stop"))
    return json.dumps([{name: value for name, value in event.items() if name != "id"} for event in played])


@on_one_client
async def test_an_answer_is_parsed_as_the_type_of_the_format(make_worker: MakeWorker) -> None:
    async with make_worker(fake("PlaysItsPrompt")) as worker:
        for type_, value in VALUES:
            assert (await worker.generate(to_play(ADA), format=type_).answer()).parsed == value


@on_one_client
async def test_the_request_has_the_schema_of_the_type(make_worker: MakeWorker) -> None:
    async with make_worker(fake("ServesAll")) as worker:
        sent = msgspec.json.decode(await worker.chat("Hi", format=Person).text())
    assert sent["messages"] == [{"role": "user", "content": "Hi"}]
    assert sent["format"]["type"] == "json_schema"
    assert sent["format"]["schema"]["$defs"]["Person"] == {"title": "Person", **SCHEMA}


@on_one_client
async def test_an_answer_without_a_type_is_not_parsed(make_worker: MakeWorker) -> None:
    async with make_worker(fake("PlaysItsPrompt")) as worker:
        assert (await worker.generate(to_play(ADA)).answer()).parsed is None
        assert (await worker.generate(to_play(ADA), format={"type": "json_object"}).answer()).parsed is None


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (list[Person], f"[{ADA}]", [Person("Ada", 36)]),
        (list[PersonModel], f"[{ADA}]", [PersonModel(name="Ada", age=36)]),
        (Household, f'{{"people":[{ADA}]}}', Household([Person("Ada", 36)])),
        (Literal["yes", "no"], '"yes"', "yes"),
        (int, "42", 42),
    ],
)
def test_collections_and_plain_types_are_parsed(type_: Any, text: str, value: object) -> None:
    assert OutputType(type_).parse(text, "stop") == value


@pytest.mark.parametrize("type_", [type_ for type_, _ in VALUES])
def test_the_schema_leaves_the_model_no_further_properties(type_: Any) -> None:
    schema = OutputType(type_).format.schema
    (described,) = schema["$defs"].values() if "$defs" in schema else [schema]
    assert described["additionalProperties"] is False


def test_a_mapping_keeps_its_free_keys() -> None:
    assert OutputType(dict[str, int]).format.schema["additionalProperties"] == {"type": "integer"}


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [("length", "raise max_tokens"), ("tool_calls", "read tool_calls"), ("timeout", "raise timeout_ms")],
)
def test_an_answer_that_was_cut_off_names_its_finish_reason(reason: str, remedy: str) -> None:
    error = OutputType(Person).parse('{"name":"Ad', reason)
    assert isinstance(error, InvalidAnswer)
    assert str(error).startswith(
        f"the answer is not a value of Person: the model did not finish it (finish_reason: {reason}): {remedy}"
    )
    assert (error.text, error.finish_reason) == ('{"name":"Ad', reason)


@pytest.mark.parametrize(
    ("type_", "text", "field"),
    [
        (Person, '{"name":"Ada","age":"old"}', "`$.age`"),
        (Household, '{"people":[{"name":1,"age":2}]}', "`$.people[0].name`"),
        (PersonModel, '{"name":"Ada","age":200}', "age\n  Value error, nobody is that old"),
    ],
)
def test_an_answer_that_the_type_refuses_names_the_field(type_: Any, text: str, field: str) -> None:
    error = OutputType(type_).parse(text, "stop")
    assert isinstance(error, InvalidAnswer)
    assert field in str(error)


@on_one_client
async def test_the_text_of_an_invalid_answer_can_still_be_read(make_worker: MakeWorker) -> None:
    async with make_worker(fake("PlaysItsPrompt")) as worker:
        answer = await worker.generate(to_play("Ada"), format=Person).answer()
    assert answer.text == "Ada"
    with pytest.raises(InvalidAnswer) as failure:
        _ = answer.parsed
    assert isinstance(failure.value, LmwireError)
    assert isinstance(failure.value, ValueError)


def test_a_type_without_a_schema_is_refused_with_the_path_to_its_field() -> None:
    with pytest.raises(TypeError, match=r"^format: Street\.number has no JSON Schema: type <class 'complex'>"):
        OutputType(Street)
    with pytest.raises(TypeError, match=r"^format: Address\.street\.number has no JSON Schema"):
        OutputType(Address)


@pytest.mark.parametrize("given", ["json", 3, Person("Ada", 36)])
def test_a_format_that_is_no_type_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"^format: must be a type, or a dictionary such as"):
        split_format(given)


@pytest.mark.parametrize("given", [None, {"type": "json_object"}, JsonObjectFormat(), JsonSchemaFormat(schema=SCHEMA)])
def test_a_format_of_the_protocol_is_sent_as_it_is(given: Any) -> None:
    assert split_format(given) == (given, None)
