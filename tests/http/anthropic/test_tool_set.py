"""Test which tools the model sees: deferred ones when they are found, and none of Anthropic's servers."""

from typing import Any

import msgspec
import pytest

from lmwire_http.anthropic.request import CountTokensRequest
from lmwire_http.anthropic.tool_set import ToolSet
from lmwire_http.errors import ApiError
from lmwire_http.http.unknown_fields import UnknownFields
from support.http.anthropic_http import WEATHER, user

LOOK = {**WEATHER, "name": "look"}
HIDDEN = {**WEATHER, "name": "hidden", "defer_loading": True}
SECRET = {**WEATHER, "name": "secret", "defer_loading": True}
SEARCH = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}


def tool_set(tools: Any, messages: Any = (), unknown: UnknownFields | None = None, **fields: Any) -> ToolSet:
    body = {"model": "m", "messages": [user("Hi"), *messages], "tools": tools, **fields}
    return ToolSet(msgspec.convert(body, CountTokensRequest), unknown or UnknownFields({}))


def shown(tools: ToolSet) -> list[str]:
    return [tool["function"]["name"] for tool in tools.options().get("tools", [])]


def found(*names: str) -> Any:
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    return user([{"type": "tool_result", "tool_use_id": "a", "content": references}])


def instructed(*blocks: Any) -> Any:
    return {"role": "system", "content": [*blocks]}


def addition(**tool: Any) -> Any:
    return {"type": "tool_addition", "tool": tool}


def test_a_deferred_tool_is_not_shown() -> None:
    assert shown(tool_set([HIDDEN, WEATHER, LOOK])) == ["weather", "look"]


def test_a_reference_in_a_result_shows_it_after_all_others() -> None:
    """The start of the prompt stays the same, and so it stays cached."""
    tools = [HIDDEN, WEATHER, SECRET, LOOK]
    assert shown(tool_set(tools, [found("secret")])) == ["weather", "look", "secret"]
    assert shown(tool_set(tools, [found("secret"), found("hidden", "secret")])) == [
        "weather",
        "look",
        "secret",
        "hidden",
    ]


def test_a_reference_to_another_tool_changes_nothing() -> None:
    assert shown(tool_set([WEATHER, HIDDEN], [found("unheard_of", "weather")])) == ["weather"]


def test_the_choice_of_a_deferred_tool_shows_it() -> None:
    choice = {"type": "tool", "name": "hidden"}
    assert shown(tool_set([WEATHER, HIDDEN], tool_choice=choice)) == ["weather", "hidden"]


def test_an_instruction_can_add_and_remove_tools() -> None:
    added = instructed(
        addition(type="tool_reference", name="hidden"),
        addition(type="tool_definition", definition={"name": "new", "input_schema": {"type": "object"}}),
    )
    removed = instructed({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "hidden"}})
    again = instructed(addition(type="tool_reference", name="hidden"))
    assert shown(tool_set([WEATHER, HIDDEN], [added])) == ["weather", "hidden", "new"]
    assert shown(tool_set([WEATHER, HIDDEN], [added, removed])) == ["weather", "new"]
    assert shown(tool_set([WEATHER, HIDDEN], [added, removed, again])) == ["weather", "new", "hidden"]


def test_tools_of_anthropics_servers_are_left_out_and_named() -> None:
    unknown = UnknownFields({})
    types = ["web_search_20250305", "code_execution_20250522", "computer_20250124"]
    hosted = [{"type": type, "name": type.partition("_")[0]} for type in types]
    assert shown(tool_set([*hosted, WEATHER, {"type": "mcp_toolset"}], unknown=unknown)) == ["weather"]
    assert [*unknown.ignored] == [f"tools[].{type}" for type in [*types, "mcp_toolset"]]


def test_without_anthropics_own_search_nothing_is_deferred() -> None:
    """The model could not find the tools otherwise."""
    unknown = UnknownFields({})
    assert shown(tool_set([SEARCH, HIDDEN, WEATHER], unknown=unknown)) == ["weather", "hidden"]
    assert [*unknown.ignored] == ["tools[].tool_search_tool_regex_20251119"]


def test_no_tools_are_shown_if_the_model_may_not_choose_one() -> None:
    assert tool_set([WEATHER], tool_choice={"type": "none"}).options() == {}
    assert tool_set([HIDDEN]).options() == {}


def test_the_choice_of_a_tool_that_is_left_out_is_refused() -> None:
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    with pytest.raises(ApiError, match="does not run tools of the type 'web_search_20250305'") as caught:
        tool_set([hosted, WEATHER], tool_choice={"type": "tool", "name": "web_search"})
    assert caught.value.param == "tool_choice.name"


@pytest.mark.parametrize(
    ("wire", "clients"),
    [
        ("tools[0].function.name", "tools[2].name"),
        ("tools[1].function.parameters.properties.x", "tools[0].input_schema.properties.x"),
        ("tools[2].function.parameters", "messages[2].content[0].tool.definition.input_schema"),
        ("tools[1]", "tools[0]"),
        ("tools[7].function.name", None),
        ("messages[0].content", None),
    ],
)
def test_the_tools_of_the_wire_have_the_clients_places(wire: str, clients: str | None) -> None:
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    new = addition(type="tool_definition", definition={"name": "new", "input_schema": {"type": "object"}})
    tools = tool_set([HIDDEN, hosted, WEATHER], [found("hidden"), instructed(new)])
    assert tools.client_field(wire) == clients
