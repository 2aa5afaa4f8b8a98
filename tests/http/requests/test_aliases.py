"""Other servers' names of fields: they reach the worker under the protocol's name, and errors use the client's."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from lmwire_http.inference.options import SAMPLING_ALIASES
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
    {
        "match": {
            "fields": {
                "dry_multiplier": 0.8,
                "dry_base": 2,
                "dry_allowed_length": 3,
                "dry_range": 0,
                "dry_sequence_breakers": ["\n", ":"],
                "banned_strings": ["a tapestry of"],
            }
        },
        "reply": {"text": "dry"},
    },
    {"match": {"fields": {"dry_multiplier": 0.8, "dry_range": 512}}, "reply": {"text": "512"}},
    {"match": {"fields": {"xtc_probability": 0.5, "xtc_threshold": 0.2}}, "reply": {"text": "xtc"}},
    {"match": {"fields": {"dry_base": 0}}, "reply": {"text": "the base of nothing"}},
    {"match": {"fields": {"max_tokens": 3}}, "reply": {"text": "three"}},
    {"match": {"fields": {"repetition_penalty": 1.5, "penalty_window": 0}}, "reply": {"text": "all tokens"}},
    {"match": {"fields": {"format": {"type": "json_schema", "schema": {"const": "42"}}}}, "reply": {"text": "42"}},
    {"match": {"fields": {"format": {"type": "json_object"}, "max_tokens": 16384}}, "reply": {"text": "bounded"}},
    {"match": {"fields": {"format": {"type": "json_object"}, "max_tokens": 50}}, "reply": {"text": "fifty"}},
    {"match": {"fields": {"ignore_eos": True, "min_tokens": 2, "stop": ["x"]}}, "reply": {"text": "on and on x"}},
    {"match": {"has": ["logit_bias"]}, "reply": {"text": "biased"}},
    {"match": {"fields": {"top_k": -1}}, "reply": {"text": "the top of nothing"}},
    {"match": {"fields": {"reasoning": "on", "reasoning_effort": "low"}}, "reply": {"text": "low"}},
    {"match": {"fields": {"reasoning": "on", "reasoning_budget": 70}}, "reply": {"text": "on, 70"}},
    {"match": {"fields": {"reasoning_budget": 70}}, "reply": {"text": "70"}},
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
def test_tabbyapis_names_reach_the_worker(server: Server, path: str) -> None:
    for name in ("rep_pen_range", "repetition_range", "repetition_penalty_range", "penalty_range"):
        answer = ask(server, path, rep_pen=1.5, cache_prompt=False, **{name: 20})
        assert text_of(answer) == "all"
        assert "x-lmwire-ignored-fields" not in answer.headers
    assert text_of(ask(server, path, rep_pen=1.5, penalty_range=-1)) == "all tokens"
    assert "rep_pen_range: must be an integer" in str(ask(server, path, rep_pen_range="all").json)


@pytest.mark.parametrize("path", PROMPTS)
@pytest.mark.parametrize("name", ["repetition_penalty", "repeat_penalty", "rep_pen"])
def test_zero_turns_top_p_and_the_repetition_penalty_off(server: Server, path: str, name: str) -> None:
    assert text_of(ask(server, path, top_p=0, **{name: 0})) == "none"


@pytest.mark.parametrize("path", PROMPTS)
@pytest.mark.parametrize(
    "forms",
    [
        {"dry_range": -1, "dry_sequence_breakers": ["\n", ":"], "banned_strings": ["a tapestry of"]},
        {"dry_penalty_last_n": -1, "dry_sequence_breakers": '["\\n", ":"]', "banned_strings": "a tapestry of"},
        {"dry_range": 0, "dry_sequence_breakers": '"\\n", ":"', "banned_strings": ["a tapestry of"]},
    ],
    ids=["lmwire's", "llama.cpp's", "tabbyAPI's"],
)
def test_dry_and_banned_strings_reach_the_worker_in_every_form(
    server: Server, path: str, forms: dict[str, Any]
) -> None:
    fields = {"dry_multiplier": 0.8, "dry_base": 2, "dry_allowed_length": 3, **forms}
    answer = ask(server, path, **fields)
    assert text_of(answer) == "dry"
    assert "x-lmwire-ignored-fields" not in answer.headers
    assert text_of(ask(server, path, dry_multiplier=0.8, dry_penalty_last_n=512)) == "512"


@pytest.mark.parametrize("path", PROMPTS)
def test_xtc_reaches_the_worker(server: Server, path: str) -> None:
    assert text_of(ask(server, path, xtc_probability=0.5, xtc_threshold=0.2)) == "xtc"


@pytest.mark.parametrize("path", PROMPTS)
def test_fields_of_dry_have_no_effect_without_its_multiplier(server: Server, path: str) -> None:
    assert text_of(ask(server, path, dry_multiplier=0, dry_base=0, dry_sequence_breakers="")) == "none"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"dry_multiplier": -1}, "dry_multiplier"),
        ({"dry_multiplier": 1, "dry_penalty_last_n": "all"}, "dry_penalty_last_n"),
        ({"dry_multiplier": 1, "dry_sequence_breakers": "[1]"}, "dry_sequence_breakers"),
        ({"dry_multiplier": 1, "dry_sequence_breakers": "a, b"}, "dry_sequence_breakers"),
        ({"dry_multiplier": 1, "dry_sequence_breakers": [""]}, "dry_sequence_breakers[0]"),
        ({"banned_strings": "x" * 257}, "banned_strings"),
        ({"banned_strings": ["a", "x" * 257]}, "banned_strings[1]"),
    ],
)
def test_an_invalid_field_of_dry_or_a_banned_string_is_refused_by_name(
    server: Server, fields: dict[str, Any], param: str
) -> None:
    answer = ask(server, CHAT, **fields)
    assert (answer.status, answer.json["error"]["param"]) == (400, param)


@pytest.mark.parametrize("path", PROMPTS)
@pytest.mark.parametrize("name", ["mirostat", "mirostat_mode", "smoothing_factor"])
def test_other_samplers_are_refused_by_name_unless_they_are_off(server: Server, path: str, name: str) -> None:
    refused = ask(server, path, **{name: 0.8})
    assert refused.status == 400
    assert f"{name}: is not supported here" in str(refused.json)
    assert ask(server, path, **{name: 0}).status == 200
    assert ask(server, path, banned_strings=[], dry_multiplier=0).status == 200


@pytest.mark.parametrize("path", PROMPTS)
def test_banned_tokens_are_a_bias(server: Server, path: str) -> None:
    for name, given in (("banned_tokens", [5, 6]), ("custom_token_bans", "5, 6"), ("custom_token_bans", [6, 5])):
        assert SAMPLING_ALIASES[name](given) == {"logit_bias": {"5": -100, "6": -100}}
        answer = ask(server, path, **{name: given})
        assert text_of(answer) == "biased"
        assert "x-lmwire-ignored-fields" not in answer.headers
    assert text_of(ask(server, path, banned_tokens=[], custom_token_bans="")) == "none"
    for wrong in ("five", [-1], [True], {"5": 1}):
        assert "banned_tokens: must be token ids" in str(ask(server, path, banned_tokens=wrong).json)


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
def test_other_names_of_an_answers_ends_reach_the_worker(server: Server, path: str) -> None:
    answer = ask(server, path, ban_eos_token=True, min_length=2, stop_sequence=["x"])
    assert text_of(answer) == "on and on "
    assert "x-lmwire-ignored-fields" not in answer.headers


@pytest.mark.parametrize("path", PROMPTS)
def test_a_top_k_of_minus_one_is_off(server: Server, path: str) -> None:
    assert text_of(ask(server, path, top_k=-1)) == "none"
    assert ask(server, path, top_k=-2).status == 400


def test_tabbyapis_json_is_any_json_object(server: Server) -> None:
    assert text_of(ask(server, CHAT, response_format={"type": "json"})) == "bounded"


def test_an_answer_in_a_format_is_bounded_where_nobody_sets_a_limit(server: Server) -> None:
    json_object = {"response_format": {"type": "json_object"}}
    assert text_of(ask(server, CHAT, **json_object)) == "bounded"
    assert text_of(ask(server, CHAT, **json_object, max_tokens=50)) == "fifty"


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
        (CHAT, "max_length"),
        (COMPLETIONS, "max_completion_tokens"),
        (COMPLETIONS, "max_length"),
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


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize(
    "name", ["reasoning_budget", "reasoning_budget_tokens", "thinking_budget", "thinking_token_budget"]
)
def test_the_budget_of_reasoning_has_four_names_and_minus_one_is_none(server: Server, path: str, name: str) -> None:
    answer = ask(server, path, **{name: 70})
    assert text_of(answer) == "70"
    assert "x-lmwire-ignored-fields" not in answer.headers
    assert text_of(ask(server, path, **{name: -1})) == "none"
    assert ask(server, path, **{name: "much"}).json["error"]["param"] == name


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"reasoning": {"effort": "low", "exclude": False}}, "low"),
        ({"reasoning": {"effort": "low"}, "reasoning_effort": "low"}, "low"),
        ({"reasoning": {"effort": "low", "enabled": True}}, "low"),
        ({"reasoning": {"effort": "none"}}, "off"),
        ({"reasoning": {"enabled": True}}, "on"),
        ({"reasoning": {"enabled": False}}, "off"),
        ({"reasoning": {"max_tokens": 70, "enabled": True}}, "on, 70"),
        ({"reasoning": {"max_tokens": 70}, "reasoning_budget": 70}, "70"),
        ({"reasoning": {"max_tokens": -1}}, "none"),
        ({"reasoning": {}}, "none"),
        ({"enable_thinking": True, "reasoning_effort": "low"}, "low"),
        ({"enable_thinking": True, "reasoning": {"effort": "low"}}, "low"),
        ({"enable_thinking": False, "reasoning": {"enabled": False}}, "off"),
    ],
)
def test_reasoning_has_openrouters_form_and_a_switch(server: Server, fields: dict[str, Any], text: str) -> None:
    answer = ask(server, CHAT, **fields)
    assert text_of(answer) == text
    assert "x-lmwire-ignored-fields" not in answer.headers


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        (CHAT, {"reasoning": {"effort": "low"}, "reasoning_effort": "high"}, "reasoning.effort"),
        (CHAT, {"reasoning": {"max_tokens": 70}, "reasoning_budget": 80}, "reasoning.max_tokens"),
        (CHAT, {"reasoning": {"max_tokens": -2}}, "reasoning.max_tokens"),
        (CHAT, {"reasoning": {"enabled": False, "effort": "low"}}, "reasoning.enabled"),
        (CHAT, {"reasoning": {"exclude": True}}, "reasoning.exclude"),
        (CHAT, {"enable_thinking": False, "reasoning_effort": "low"}, "enable_thinking"),
        (CHAT, {"enable_thinking": True, "reasoning": {"enabled": False}}, "reasoning.enabled"),
        (CHAT, {"banned_tokens": [5], "logit_bias": {"6": 1}}, "banned_tokens"),
        (CHAT, {"repeat_penalty": -1}, "repeat_penalty"),
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


def test_llama_cpps_schema_is_the_answers_format(server: Server) -> None:
    assert text_of(ask(server, CHAT, json_schema={"const": "42"})) == "42"
    assert text_of(ask(server, CHAT, json_schema=None)) == "none"
    other: Any = {"type": "json_object"}
    assert "json_schema: says the same as" in str(ask(server, CHAT, json_schema={}, response_format=other).json)
    assert "json_schema: must be a JSON Schema" in str(ask(server, CHAT, json_schema="42").json)
