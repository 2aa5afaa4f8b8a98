"""Effects of the options of `lmwire serve` for tool calls and reasoning, each in a real server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.http.http_server import MOCK, Server, served
from support.http.raw_http import CHAT, asked, chat_body
from support.process.lmwire_command import lmwire

pytestmark = pytest.mark.slow

TINY: Final = "builtin:tiny"
SCRIPT: Final = Path(__file__).parents[1] / "scripted_answers.json"
USAGE: Final = 64
PARIS: Final = {"role": "user", "content": "What is the weather in Paris?"}
SUM: Final = {"role": "user", "content": "What is 17 + 25?"}
SCHEMA: Final = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Oslo"]}},
    "required": ["city"],
    "additionalProperties": False,
}
DESCRIPTION: Final = "Get the weather of a city."


@pytest.fixture(scope="module")
def strict() -> Iterator[Server]:
    with served(TINY, "--strict-tools", "--reasoning", "off") as server:
        yield server


def post(server: Server, path: str, **body: Any) -> Any:
    answer = asked(server.url, "POST", path, {"model": TINY, "temperature": 0, **body})
    assert answer.status == 200, answer.body
    return answer.json


def chat_city(server: Server, **strict: bool) -> str:
    function = {"name": "get_weather", "description": DESCRIPTION, "parameters": SCHEMA, **strict}
    answer = post(server, CHAT, messages=[PARIS], tools=[{"type": "function", "function": function}])
    return answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]


def response_city(server: Server, **strict: bool) -> str:
    tool = {"type": "function", "name": "get_weather", "description": DESCRIPTION, "parameters": SCHEMA, **strict}
    answer = post(server, "/v1/responses", input=[PARIS], tools=[tool])
    return next(item["arguments"] for item in answer["output"] if item["type"] == "function_call")


def message_city(server: Server, **strict: bool) -> str:
    tool = {"name": "get_weather", "description": DESCRIPTION, "input_schema": SCHEMA, **strict}
    answer = post(server, "/v1/messages", messages=[PARIS], tools=[tool], max_tokens=99)
    return str(next(block["input"] for block in answer["content"] if block["type"] == "tool_use"))


@pytest.mark.parametrize("city", [chat_city, response_city, message_city])
def test_arguments_follow_the_schema_on_a_strict_server_unless_the_request_says_no(
    strict: Server, tiny_server: Server, city: Any
) -> None:
    assert "Paris" in city(tiny_server)
    assert "Oslo" in city(strict)
    assert "Paris" in city(strict, strict=False)


def reasoning(server: Server, **options: Any) -> str:
    message = post(server, CHAT, messages=[SUM], **options)["choices"][0]["message"]
    return message.get("reasoning_content", "")


def test_a_server_turns_reasoning_off_unless_the_request_turns_it_on(strict: Server) -> None:
    assert not reasoning(strict)
    assert reasoning(strict, reasoning_effort="high")
    assert reasoning(strict, chat_template_kwargs={"enable_thinking": True})


def test_a_count_of_tokens_has_the_servers_reasoning(strict: Server) -> None:
    prompt = {"input": "What is 2 + 2?"}
    counted = post(strict, "/v1/responses/input_tokens", **prompt)["input_tokens"]
    assert counted == post(strict, "/v1/responses", max_output_tokens=16, **prompt)["usage"]["input_tokens"]


def test_a_server_turns_reasoning_on_unless_the_request_turns_it_off() -> None:
    with served(TINY, "--reasoning", "on") as server:
        assert reasoning(server)
        assert not reasoning(server, reasoning_effort="none")


@pytest.mark.parametrize(("mode", "wish"), [("off", "high"), ("on", "none")])
def test_an_operator_can_force_reasoning_on_or_off(mode: str, wish: str) -> None:
    with served(TINY, "--reasoning", mode, "--force-reasoning") as server:
        assert bool(reasoning(server, reasoning_effort=wish)) == (mode == "on")
        kwargs = {"enable_thinking": mode == "off"}
        assert bool(reasoning(server, chat_template_kwargs=kwargs)) == (mode == "on")
        thinking = {"type": "enabled", "budget_tokens": 1024} if mode == "off" else {"type": "disabled"}
        answer = post(server, "/v1/messages", messages=[SUM], max_tokens=2000, thinking=thinking)
        assert (answer["content"][0]["type"] == "thinking") == (mode == "on")


@pytest.mark.parametrize(
    ("name", "fields"),
    [("reasoning", {"reasoning"}), ("both", {"reasoning", "reasoning_content"})],
)
def test_the_reasoning_has_the_name_that_the_operator_chose(name: str, fields: set[str]) -> None:
    body = chat_body("think aloud")
    with served("--worker", f"{MOCK} --scenario {SCRIPT}", "--reasoning-field", name) as server:
        message = asked(server.url, "POST", CHAT, body).json["choices"][0]["message"]
        streamed = asked(server.url, "POST", CHAT, {**body, "stream": True}).body.decode()
    assert message.keys() & {"reasoning", "reasoning_content"} == fields
    deltas = [json.loads(line[6:])["choices"][0]["delta"] for line in streamed.split("\n\n") if '"delta"' in line]
    for field in fields:
        assert message[field] and "".join(delta.get(field, "") for delta in deltas) == message[field]
    assert set().union(*deltas) & {"reasoning", "reasoning_content"} == fields


def test_the_markers_of_reasoning_can_be_named(tiny_server: Server) -> None:
    who = {"messages": [{"role": "user", "content": "Who are you?"}], "reasoning_effort": "none"}
    plain = post(tiny_server, CHAT, **who)["choices"][0]["message"]["content"]
    before, _, rest = plain.partition(" tiny ")
    between, _, after = rest.partition(" ships ")
    with served(TINY, "--reasoning-start", " tiny ", "--reasoning-end", " ships ") as server:
        message = post(server, CHAT, **who)["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == (before + after, between)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--force-reasoning"], "--force-reasoning"),
        (["--reasoning-start", "<a>"], "--reasoning-end"),
        (["--reasoning-end", "<a>"], "--reasoning-start"),
    ],
)
def test_options_that_need_another_one_are_refused_with_its_name(options: list[str], named: str) -> None:
    refused = lmwire("serve", "--worker", MOCK, *options)
    assert refused.returncode == USAGE
    assert named in refused.stderr
