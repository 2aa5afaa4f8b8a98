"""Tools and calls as Python."""

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmwire_protocol import Function
from lmwire_worker.prompts.python_tool_signatures import signature
from lmwire_worker.tool_parsers.python_calls import call_text, literal

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def head(schema: Any, *, required: bool = True) -> str:
    parameters = {"type": "object", "properties": {"a": schema}, "required": ["a"] if required else []}
    return signature(Function(name="f", parameters=parameters)).splitlines()[0]


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "string"}, "str"),
        ({"type": "number"}, "float"),
        ({"type": "array", "items": {"type": "integer"}}, "list[int]"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"anyOf": [{"type": "boolean"}, {"type": "object"}]}, "bool | dict"),
        ({"enum": ["kg", 1, None]}, 'Literal["kg", 1, None]'),
        ({}, "Any"),
        (True, "Any"),
        ({"type": 5}, "Any"),
    ],
)
def test_types_are_pythons(schema: Any, written: str) -> None:
    assert head(schema) == f"def f(a: {written}):"


def test_what_need_not_be_given_has_a_default_and_comes_last() -> None:
    properties = {"a": {"type": "integer", "default": 3}, "b": {"type": "string"}, "c": {"type": "string"}}
    found = signature(Function(name="f", parameters={"properties": properties, "required": ["c"]}))
    assert found.startswith("def f(c: str, a: int = 3, b: str = None):")


def test_the_docstring_describes_the_function_its_parameters_and_what_types_leave_out() -> None:
    nested = {"type": "object", "description": "Where.", "properties": {"lat": {"type": "number"}}}
    function = Function(name="f", description="Does it.\nWell.", parameters={"properties": {"place": nested}})
    assert signature(function) == (
        "def f(place: dict = None):\n"
        '    """Does it.\n'
        "    Well.\n"
        "\n"
        "    Args:\n"
        '        place: Where. JSON Schema: {"properties": {"lat": {"type": "number"}}}\n'
        '    """'
    )


def test_a_function_without_parameters_and_description_is_its_head() -> None:
    assert signature(Function(name="now")) == 'def now():\n    """"""'


@given(JSON)
def test_a_literal_is_the_value_to_python(value: Any) -> None:
    assert ast.literal_eval(literal(value)) == value


def test_a_call_names_its_arguments() -> None:
    assert call_text("f", {"a": "x", "b": [True, None]}) == 'f(a="x", b=[True, None])'


@pytest.mark.parametrize("name", ["from", "x-y", ""])
def test_arguments_that_python_cannot_name_are_a_dictionary(name: str) -> None:
    assert call_text("f", {name: 1}) == f'f(**{{"{name}": 1}})'
