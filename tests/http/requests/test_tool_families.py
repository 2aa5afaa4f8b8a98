"""Tools over HTTP with a real worker of each family: a call, its result and a second call, in both APIs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from support.http.http_server import served_process
from support.http.raw_http import asked
from support.models.templated_model import write_templated_model
from support.models.tool_families import FAMILIES

pytestmark = pytest.mark.slow

SAMPLE = ("json_tools", "qwen3_coder", "mistral_nemo", "pythonic")
"""The families that each commit tries: one of each shape."""
SCHEMA = {
    "type": "object",
    "properties": {"path": {"enum": ["a.c", "b.c"]}, "line": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["path", "line"],
    "additionalProperties": False,
}
families = [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.nightly) for name in FAMILIES]

Post = Callable[[str, dict[str, Any]], dict[str, Any]]


def check(arguments: dict[str, Any]) -> None:
    jsonschema.validate(arguments, SCHEMA)


def call_with_openai(post: Post, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the assistant's message, which must call the tool once."""
    tools = [{"type": "function", "function": {"name": "edit", "parameters": SCHEMA}}]
    options = {"tools": tools, "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 400}
    (choice,) = post("/v1/chat/completions", {"messages": messages, **options})["choices"]
    assert choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "edit"
    check(json.loads(call["function"]["arguments"]))
    assert not choice["message"]["content"]
    return choice["message"]


def call_with_anthropic(post: Post, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the assistant's message, which must use the tool once."""
    tools = [{"name": "edit", "input_schema": SCHEMA}]
    choice = {"type": "any", "disable_parallel_tool_use": True}
    answer = post("/v1/messages", {"messages": messages, "tools": tools, "tool_choice": choice, "max_tokens": 400})
    assert answer["stop_reason"] == "tool_use"
    (block,) = answer["content"]
    assert (block["type"], block["name"]) == ("tool_use", "edit")
    check(block["input"])
    return {"role": "assistant", "content": answer["content"]}


@pytest.mark.parametrize("name", families)
def test_a_call_its_result_and_a_second_call_pass_through_both_apis(name: str, tmp_path: Path) -> None:
    folder = str(write_templated_model(tmp_path / "model", FAMILIES[name].template))
    asking = {"role": "user", "content": "Edit it."}
    with served_process(folder) as server:

        def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
            answer = asked(server.url, "POST", path, json.dumps({"model": folder, **body}).encode())
            assert answer.status == 200, answer.body
            return answer.json

        called = call_with_openai(post, [asking])
        result = {"role": "tool", "tool_call_id": called["tool_calls"][0]["id"], "content": "Done."}
        call_with_openai(post, [asking, called, result])
        used = call_with_anthropic(post, [asking])
        block = {"type": "tool_result", "tool_use_id": used["content"][0]["id"], "content": "Done."}
        call_with_anthropic(post, [asking, used, {"role": "user", "content": [block]}])
