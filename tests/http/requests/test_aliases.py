"""Other servers' names of fields: they reach the worker under the protocol's name, and errors use the client's."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from support.http.http_server import MOCK, Server, served
from support.http.raw_http import CHAT, Answer, asked

USER: Final = {"role": "user", "content": "hello"}
COMPLETIONS, RESPONSES, MESSAGES = "/v1/completions", "/v1/responses", "/v1/messages"
PROMPTS: Final[dict[str, Any]] = {
    CHAT: {"messages": [USER]},
    COMPLETIONS: {"prompt": "hello"},
    RESPONSES: {"input": "hello"},
    MESSAGES: {"messages": [USER], "max_tokens": 50},
}
RULES: Final = [
    {"match": {"fields": {"repetition_penalty": 1.5, "penalty_window": 20, "cache": "off"}}, "reply": {"text": "all"}},
    {"match": {"fields": {"max_tokens": 3}}, "reply": {"text": "three"}},
    {"match": {"fields": {"reasoning": "on", "reasoning_budget": 70}}, "reply": {"text": "on, 70"}},
    {"match": {"fields": {"reasoning": "on"}}, "reply": {"text": "on"}},
    {"match": {"fields": {"reasoning": "off"}}, "reply": {"text": "off"}},
    {"match": {}, "reply": {"text": "none"}},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    scenario = tmp_path_factory.mktemp("aliases") / "scenario.json"
    scenario.write_text(json.dumps({"rules": RULES}))
    with served("--worker", f"{MOCK} --scenario {scenario}") as server:
        yield server


def ask(server: Server, path: str, **fields: Any) -> Answer:
    return asked(server.url, "POST", path, {"model": "mock", **PROMPTS[path], **fields})


def text_of(answer: Answer) -> str:
    assert answer.status == 200, answer
    match answer.json:
        case {"choices": [{"message": {"content": text}}]} | {"choices": [{"text": text}]}:
            return text
        case {"output": [*_, {"content": [{"text": text}]}]} | {"content": [{"text": text}]}:
            return text
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize("path", PROMPTS)
def test_names_of_sampling_options_reach_the_worker(server: Server, path: str) -> None:
    answer = ask(server, path, repeat_penalty=1.5, repetition_context_size=20, cache_prompt=False)
    assert text_of(answer) == "all"
    assert "x-lmwire-ignored-fields" not in answer.headers


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (CHAT, "max_tokens"),
        (CHAT, "max_completion_tokens"),
        (COMPLETIONS, "max_completion_tokens"),
        (RESPONSES, "max_tokens"),
        (RESPONSES, "max_completion_tokens"),
    ],
)
def test_the_limit_of_tokens_has_every_name_in_every_api(server: Server, path: str, name: str) -> None:
    assert text_of(ask(server, path, **{name: 3})) == "three"
    refused = ask(server, path, **{name: -1}).json["error"]
    assert refused["param"] == name
    assert refused["message"].startswith(f"{name}: ")


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
def test_reasoning_can_be_turned_off_by_a_switch(server: Server, path: str) -> None:
    assert text_of(ask(server, path, enable_thinking=False)) == "off"


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"enable_thinking": True}, "on"),
        ({"thinking": True}, "on"),
        ({"thinking": {"type": "enabled"}}, "on"),
        ({"thinking": {"type": "enabled", "budget_tokens": 70}}, "on, 70"),
        ({"thinking": {"type": "disabled"}}, "off"),
        ({"thinking": {"type": "adaptive"}}, "none"),
    ],
)
def test_reasoning_has_anthropics_form_too(server: Server, path: str, fields: dict[str, Any], text: str) -> None:
    assert text_of(ask(server, path, **fields)) == text


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        (CHAT, {"repeat_penalty": 0}, "repeat_penalty"),
        (CHAT, {"repeat_penalty": "much"}, "repeat_penalty"),
        (CHAT, {"cache_prompt": "no"}, "cache_prompt"),
        (CHAT, {"enable_thinking": "no"}, "enable_thinking"),
        (CHAT, {"thinking": {"type": "loud"}}, "thinking"),
        (CHAT, {"repeat_penalty": 1.5, "repetition_penalty": 1.2}, "repeat_penalty"),
        (RESPONSES, {"max_tokens": 3, "max_output_tokens": 4}, "max_tokens"),
        (CHAT, {"thinking": {"type": "enabled", "budget_tokens": -1}}, "thinking"),
        (CHAT, {"template_vars": 1}, "template_vars"),
    ],
)
def test_an_error_names_the_clients_field(server: Server, path: str, fields: dict[str, Any], param: str) -> None:
    answer = ask(server, path, **fields)
    assert (answer.status, answer.json["error"]["param"]) == (400, param)
    assert answer.json["error"]["message"].replace("`", "").startswith(f"{param}: ")


def test_a_strict_server_knows_these_names() -> None:
    with served("--worker", MOCK, "--strict") as strict:
        assert ask(strict, CHAT, repeat_penalty=1.5, enable_thinking=False).status == 200
        refused = ask(strict, CHAT, repeat_penalty=1.5, repeat_penalti=1.5)
        assert (refused.status, refused.json["error"]["param"]) == (400, "repeat_penalti")


def test_two_names_with_one_value_are_accepted(server: Server) -> None:
    fields = {"penalty_window": 20, "cache": "off"}
    assert text_of(ask(server, CHAT, repeat_penalty=1.5, repetition_penalty=1.5, **fields)) == "all"
    assert text_of(ask(server, CHAT, max_tokens=3, max_completion_tokens=3)) == "three"


def test_a_value_of_another_type_is_not_hidden_by_a_second_name(server: Server) -> None:
    answer = ask(server, RESPONSES, max_tokens=False, max_completion_tokens=0, max_output_tokens=0)
    assert (answer.status, answer.json["error"]["param"]) == (400, "max_tokens")


@pytest.mark.parametrize("path", PROMPTS)
@pytest.mark.parametrize("name", ["keep_alive", "ttl"])
def test_a_request_says_how_long_its_model_stays_in_memory(server: Server, path: str, name: str) -> None:
    answer = ask(server, path, **{name: 0})
    assert text_of(answer) == "none"
    assert "x-lmwire-ignored-fields" not in answer.headers
    server.wait_for("lmwire_model_loaded", 0)
    assert text_of(ask(server, path, **{name: "5m"})) == "none"
    assert server.figure("lmwire_model_loaded") == 1


@pytest.mark.parametrize("value", ["soon", [5], True])
def test_a_time_that_is_none_is_refused_by_the_clients_name(server: Server, value: object) -> None:
    answer = ask(server, CHAT, ttl=value)
    assert (answer.status, answer.json["error"]["param"]) == (400, "ttl")


@pytest.mark.parametrize("path", PROMPTS)
def test_stream_options_without_a_stream_have_no_effect(server: Server, path: str) -> None:
    assert text_of(ask(server, path, stream_options={"include_usage": True})) == "none"
