"""Unknown fields over HTTP: they are ignored, logged once and named in a header, and `--strict` refuses them."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from lmwire_http.errors import ApiError
from lmwire_http.http.unknown_fields import IGNORED_FIELDS_HEADER, UnknownFields
from support.http.http_server import MOCK, Server, served
from support.http.raw_http import CHAT, Answer, asked

USER: Final = {"role": "user", "content": "hello"}
COMPLETIONS, RESPONSES, MESSAGES = "/v1/completions", "/v1/responses", "/v1/messages"
EMBEDDINGS, TRANSCRIPTIONS = "/v1/embeddings", "/v1/audio/transcriptions"
PROMPTS: Final[dict[str, Any]] = {
    CHAT: {"messages": [USER]},
    COMPLETIONS: {"prompt": "hello"},
    RESPONSES: {"input": "hello"},
    MESSAGES: {"messages": [USER], "max_tokens": 8},
    f"{MESSAGES}/count_tokens": {"messages": [USER]},
    EMBEDDINGS: {"input": "hello"},
}
CALL: Final = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TOOL: Final = {"type": "function", "function": {"name": "look"}}


@pytest.fixture(scope="module")
def strict_server() -> Iterator[Server]:
    with served("--worker", MOCK, "--strict") as server:
        yield server


def ask(server: Server, path: str, **fields: Any) -> Answer:
    return asked(server.url, "POST", path, {"model": "mock", **PROMPTS[path], **fields})


def ignored(answer: Answer) -> list[str]:
    assert answer.status == 200, answer
    return answer.headers.get(IGNORED_FIELDS_HEADER, "").split(", ")


@pytest.mark.parametrize("path", PROMPTS)
def test_an_unknown_field_is_ignored_and_named_in_a_header(mock_server: Server, path: str) -> None:
    plain = ask(mock_server, path)
    assert IGNORED_FIELDS_HEADER not in plain.headers
    answer = ask(mock_server, path, request_notes={"a": 1}, nothing=None, surprise=[1])
    assert ignored(answer) == ["request_notes", "surprise"]
    assert "surprise" not in answer.body.decode()


@pytest.mark.parametrize("path", PROMPTS)
def test_a_strict_server_refuses_it(strict_server: Server, path: str) -> None:
    answer = ask(strict_server, path, surprise=1)
    assert answer.status == 400
    assert "surprise: Object contains unknown field `surprise`" in answer.json["error"]["message"]
    assert ask(strict_server, path).status == 200


def test_a_strict_server_names_the_place_of_a_field(strict_server: Server) -> None:
    answer = ask(strict_server, CHAT, messages=[USER, {**USER, "mood": "sad"}])
    assert (answer.status, answer.json["error"]["param"]) == (400, "messages[1].mood")


@pytest.mark.parametrize(
    ("path", "fields", "names"),
    [
        (
            CHAT,
            {
                "messages": [
                    {**USER, "mood": "sad"},
                    {"role": "assistant", "content": "Hi", "provider_specific_fields": {"a": 1}},
                    {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}], "mood": "glad"},
                    {"role": "assistant", "tool_calls": [{**CALL, "extra_content": {}}]},
                    {"role": "tool", "tool_call_id": "a", "content": "nothing"},
                ],
                "tools": [{**TOOL, "cache_control": {}, "function": {"name": "look", "returns": {}}}],
                "stream_options": {"usage": True},
            },
            [
                "messages[].mood",
                "messages[].provider_specific_fields",
                "messages[].content[].cache_control",
                "messages[].tool_calls[].extra_content",
                "tools[].cache_control",
                "tools[].function.returns",
                "stream_options.usage",
            ],
        ),
        (
            RESPONSES,
            {
                "input": [
                    {**USER, "mood": "sad"},
                    {"role": "user", "content": [{"type": "input_text", "text": "x", "weight": 1}]},
                ],
                "tools": [{"type": "function", "name": "look", "returns": {}}],
                "request_notes": {},
            },
            ["tools[].returns", "request_notes", "input[].mood", "input[].content[].weight"],
        ),
        (
            MESSAGES,
            {
                "messages": [{"role": "user", "content": [{"type": "text", "text": "x", "weight": 1}], "id": 1}],
                "system": [{"type": "text", "text": "Be kind.", "weight": 1}],
                "tools": [{"name": "look", "input_schema": {"type": "object"}, "returns": {}}],
            },
            ["messages[].id", "messages[].content[].weight", "system[].weight", "tools[].returns"],
        ),
    ],
)
def test_an_unknown_field_of_a_message_tool_or_part_is_ignored(
    mock_server: Server, path: str, fields: dict[str, Any], names: list[str]
) -> None:
    assert sorted(ignored(ask(mock_server, path, **fields))) == sorted(names)


def test_a_form_may_have_unknown_fields_too(mock_server: Server, strict_server: Server) -> None:
    parts = {"model": "mock", "file": "RIFF", "surprise": "1"}
    form = "".join(
        f'--x\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in parts.items()
    )
    for server, known in ((mock_server, True), (strict_server, False)):
        answer = asked(
            server.url,
            "POST",
            TRANSCRIPTIONS,
            f"{form}--x--\r\n".encode(),
            content_type="multipart/form-data; boundary=x",
        )
        assert (answer.headers.get(IGNORED_FIELDS_HEADER) == "surprise") is known
        assert ("unknown field `surprise`" in answer.body.decode()) is not known


def test_a_stream_and_an_error_have_the_header(mock_server: Server) -> None:
    assert ignored(ask(mock_server, CHAT, stream=True, surprise=1)) == ["surprise"]
    refused = ask(mock_server, CHAT, surprise=1, top_logprobs=-1)
    assert (refused.status, refused.headers[IGNORED_FIELDS_HEADER]) == (400, "surprise")


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        (CHAT, {"guided_json": {"type": "object"}}, "guided_json"),
        (CHAT, {"stop_sequences": ["x"]}, "stop_sequences"),
        (CHAT, {"regex_pattern": "[0-9]+"}, "regex_pattern"),
        (CHAT, {"grammar_string": "root ::= x"}, "grammar_string"),
        (CHAT, {"allowed_tokens": [5]}, "allowed_tokens"),
        (CHAT, {"system": "Be kind."}, "system"),
        (CHAT, {"best_of": 2}, "best_of"),
        (CHAT, {"response_format": {"type": "json_object", "scheme": {}}}, "response_format.scheme"),
        (CHAT, {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look", "x": 1}}}, None),
        (CHAT, {"messages": [{**USER, "images": ["aGk="]}]}, "messages[0].images"),
        (CHAT, {"messages": [{**USER, "tool_calls": [CALL]}]}, "messages[0].tool_calls"),
        (COMPLETIONS, {"tools": [TOOL]}, "tools"),
        (COMPLETIONS, {"ebnf": "root ::= x"}, "ebnf"),
        (RESPONSES, {"response_format": {"type": "json_object"}}, "response_format"),
        (RESPONSES, {"text": {"format": {"type": "json_object", "scheme": {}}}}, "text.format.scheme"),
        (MESSAGES, {"response_format": {"type": "json_object"}}, "response_format"),
        (MESSAGES, {"stop": "x"}, "stop"),
        (MESSAGES, {"stop_sequence": ["x"]}, "stop_sequence"),
        (MESSAGES, {"max_length": 20}, "max_length"),
        (MESSAGES, {"n": 2}, "n"),
        (EMBEDDINGS, {"input_type": "query"}, "input_type"),
        (EMBEDDINGS, {"instruct": "Find the answer."}, "instruct"),
    ],
)
def test_a_field_that_would_change_the_answer_is_refused(
    mock_server: Server, path: str, fields: dict[str, Any], param: str | None
) -> None:
    answer = ask(mock_server, path, surprise=1, **fields)
    assert answer.status == 400, answer
    assert (param or "tool_choice") in answer.json["error"]["message"]
    if path != MESSAGES and param:
        assert answer.json["error"]["param"] == param


def test_an_unsupported_field_may_have_a_value_without_effect(mock_server: Server) -> None:
    answer = ask(mock_server, CHAT, guided_json=None, use_beam_search=False, stop_token_ids=[])
    assert ignored(answer) == ["use_beam_search", "stop_token_ids"]
    assert ignored(ask(mock_server, MESSAGES, n=1)) == ["n"]
    assert ask(mock_server, MESSAGES, n=True).status == 400


def test_a_wrong_field_beside_an_unknown_one_is_named(mock_server: Server) -> None:
    answer = ask(mock_server, CHAT, surprise=1, logit_bias={"40": 1}, temperature="hot")
    assert (answer.status, answer.json["error"]["param"]) == (400, "temperature")
    assert ask(mock_server, CHAT, surprise=1, logit_bias={"40": 1}, seed=2**62).status == 200


def test_a_hostile_client_cannot_fill_the_header_the_log_or_the_memory() -> None:
    with served("--worker", MOCK) as server:
        names = [f"field{number}" for number in range(600)]
        for start in range(0, len(names), 10):
            ask(server, CHAT, **dict.fromkeys(names[start : start + 10], 1))
        answer = ask(server, CHAT, **{**dict.fromkeys(names, 1), "evil\r\nname: x": 1, "é" * 100: 1})
        shown = ignored(answer)
        assert shown == [*names[:16], "..."]
        odd = ask(server, CHAT, **{"evil\r\nname: x": 1, "n" * 100_000: 1, "é": 1})
        assert ignored(odd) == ["(unusual name)"]
        server.wait_for_line("further fields")
        logged = [line for line in server.log if "is not served" in line]
    assert len(logged) == 256
    assert len([line for line in logged if line.rstrip().endswith("field=field0")]) == 1
    assert not [line for line in server.log if "evil" in line]


def test_many_messages_with_unknown_fields_are_read_at_once(mock_server: Server) -> None:
    turns = [{**USER, "provider_specific_fields": {}}, {"role": "assistant", "content": "Hi", "mood": 1}] * 500
    answer = ask(mock_server, CHAT, messages=[*turns, USER])
    assert ignored(answer) == ["messages[].provider_specific_fields", "messages[].mood"]
    assert json.loads(answer.body)["choices"]


# Parts that are known but not served.


def test_a_part_that_is_left_out_is_named_by_its_place_and_type() -> None:
    unknown = UnknownFields({})
    unknown.leave_out("tools[2]", "web_search")
    unknown.leave_out("tools[5]", "web_search")
    unknown.leave_out("tools[6]", "evil\r\nname: x")
    assert unknown.header() == {IGNORED_FIELDS_HEADER: "tools[].web_search, tools[].(unusual name)"}


def test_a_part_that_would_be_left_out_is_refused_if_unknown_fields_are() -> None:
    with pytest.raises(ApiError, match=r"tools\[2\]: the type web_search is not served here") as caught:
        UnknownFields({}, strict=True).leave_out("tools[2]", "web_search")
    assert (caught.value.status, caught.value.param) == (400, "tools[2]")
