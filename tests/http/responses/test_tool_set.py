"""The tools of a response request as functions, and the way back."""

from typing import Any

import pytest

from lmwire_http.errors import ApiError
from lmwire_http.http.unknown_fields import UnknownFields
from lmwire_http.openai.responses.tools import CalledTool, ToolSet, input_of, read_choice, read_tools

SPAWN: Any = {"type": "function", "name": "spawn", "description": "Start one.", "parameters": {"type": "object"}}
CLOSE: Any = {"type": "function", "name": "close"}
AGENTS: Any = {"type": "namespace", "name": "agents", "description": "Helpers.", "tools": [SPAWN, CLOSE]}
PATCH: Any = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edit files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}
SEARCH: Any = {"type": "web_search", "external_web_access": False}


def tool_set(*tools: Any, choice: Any = None, unknown: UnknownFields | None = None) -> ToolSet:
    unknown = unknown or UnknownFields({})
    return ToolSet({"tools": read_tools(tools, unknown)}, None if choice is None else read_choice(choice, unknown))


def offered(tools: ToolSet) -> list[dict[str, Any]]:
    return [tool["function"] for tool in tools.options().get("tools", ())]


def test_functions_of_a_namespace_have_its_name_and_say_its_purpose_once() -> None:
    assert offered(tool_set(AGENTS)) == [
        {"name": "agents__spawn", "description": "Helpers.\n\nStart one.", "parameters": {"type": "object"}},
        {"name": "agents__close"},
    ]


def test_a_namespace_that_ends_with_the_separator_is_not_given_another() -> None:
    [function] = offered(tool_set({"type": "namespace", "name": "mcp__git__", "tools": [CLOSE]}))
    assert function["name"] == "mcp__git__close"


def test_a_custom_tool_is_a_function_of_one_text_with_its_grammar_described() -> None:
    [function] = offered(tool_set(PATCH))
    assert function["name"] == "apply_patch"
    assert function["description"].startswith("Edit files.")
    assert function["description"].endswith("The input follows this Lark grammar:\nstart: /.+/")
    assert list(function["parameters"]["properties"]) == function["parameters"]["required"] == ["input"]


def test_the_called_function_is_the_tool_that_it_stands_for() -> None:
    tools = tool_set(AGENTS, PATCH)
    assert tools.called("agents__spawn") == CalledTool("spawn", "agents")
    assert tools.called("apply_patch") == CalledTool("apply_patch", is_custom=True)
    assert tools.called("unheard_of") == CalledTool("unheard_of")


def test_a_tool_that_is_not_served_is_left_out_and_named() -> None:
    unknown = UnknownFields({})
    assert [function["name"] for function in offered(tool_set(SEARCH, CLOSE, unknown=unknown))] == ["close"]
    assert [*unknown.ignored] == ["tools[].web_search"]


def test_a_tool_that_is_not_served_is_refused_if_unknown_fields_are() -> None:
    with pytest.raises(ApiError, match="web_search") as refused:
        tool_set(CLOSE, SEARCH, unknown=UnknownFields({}, strict=True))
    assert refused.value.param == "tools[1]"


@pytest.mark.parametrize(
    ("wire", "clients"),
    [
        ("tools[0].function.parameters.type", "tools[1].parameters.type"),
        ("tools[1].function.name", "tools[2].tools[0].name"),
        ("tools[2]", "tools[2].tools[1]"),
        ("tools[3]", None),
        ("temperature", None),
    ],
)
def test_a_tool_of_the_wire_has_the_clients_path(wire: str, clients: str | None) -> None:
    assert tool_set(SEARCH, PATCH, AGENTS).client_field(wire) == clients


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        ("required", "required"),
        ({"type": "custom", "name": "apply_patch"}, {"name": "apply_patch"}),
        ({"type": "function", "name": "spawn", "namespace": "agents"}, {"name": "agents__spawn"}),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "apply_patch"}]}, "auto"),
    ],
)
def test_a_choice_names_the_function(choice: Any, chosen: Any) -> None:
    assert tool_set(AGENTS, PATCH, choice=choice).options()["tool_choice"] == chosen


def test_only_allowed_tools_are_offered_and_hosted_ones_are_not_missed() -> None:
    allowed = [
        {"type": "function", "name": "close", "namespace": "agents"},
        {"type": "web_search"},
    ]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": allowed}
    tools = tool_set(SEARCH, AGENTS, PATCH, choice=choice)
    assert [function["name"] for function in offered(tools)] == ["agents__close"]
    assert tools.client_field("tools[0].function.name") == "tools[1].tools[1].name"


@pytest.mark.parametrize(
    ("tools", "choice", "param"),
    [
        ([SEARCH], {"type": "web_search"}, "tool_choice.type"),
        ([CLOSE], {"type": "custom"}, "tool_choice.name"),
        ([CLOSE], "sometimes", "tool_choice"),
        (
            [CLOSE],
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "sing"}]},
            "tool_choice.tools[0].name",
        ),
        ([{"type": "custom"}], None, "tools[0].name"),
        ([SEARCH, {"type": "namespace", "name": "x", "tools": [SEARCH]}], None, "tools[1].tools[0].type"),
        ([{**PATCH, "format": {"type": "grammar", "syntax": "bnf"}}], None, "tools[0].format.syntax"),
        ([AGENTS, {"type": "custom", "name": "agents__close"}], None, "tools[1].name"),
        ([{"type": 5, "name": "x"}], None, "tools[0].type"),
    ],
)
def test_an_invalid_tool_or_choice_is_named(tools: Any, choice: Any, param: str) -> None:
    with pytest.raises(ApiError) as refused:
        tool_set(*tools, choice=choice)
    assert refused.value.param == param
    assert param in refused.value.message


def test_of_tools_with_the_same_name_the_last_one_counts() -> None:
    first, later = {**CLOSE, "description": "Old."}, {**CLOSE, "description": "New."}
    read = [read_tools([tool], UnknownFields({})) for tool in (first, later)]
    tools = ToolSet({"tools": read[0], "input[1].tools": read[1]})
    assert [function["description"] for function in offered(tools)] == ["New."]
    assert tools.client_field("tools[0].function.description") == "input[1].tools[0].description"


@pytest.mark.parametrize(
    ("arguments", "input"),
    [
        ('{"input":"a\\nb"}', "a\nb"),
        ('{"patch":"a"}', "a"),
        ('{"patch":"a","more":"b"}', '{"patch":"a","more":"b"}'),
        ('{"input":5}', '{"input":5}'),
        ("*** Begin", "*** Begin"),
    ],
)
def test_the_input_of_a_custom_tool_is_found_in_what_models_write(arguments: str, input: str) -> None:
    assert input_of(arguments) == input
