"""Requests that Claude Code 2.1.331 has sent, shortened, so that a change is noticed without the program."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lmwire_http.anthropic.conversation import Conversation
from lmwire_http.anthropic.request import MessagesRequest
from lmwire_http.anthropic.tool_set import ToolSet
from lmwire_http.http.unknown_fields import IGNORED_FIELDS_HEADER, UnknownFields
from support.http.http_server import Server
from support.http.raw_http import asked
from support.nightly import nightly_but

TURNS = ("claude_first_turn", "claude_after_call", "claude_second_turn")
NAMES = (*TURNS, "claude_after_tool_search", "claude_other_model")
PATH = "/v1/messages?beta=true"
BETAS = {"anthropic_version": "2023-06-01", "anthropic_beta": "claude-code-20250219,advanced-tool-use-2025-11-20"}


def recorded(name: str) -> dict[str, Any]:
    return json.loads(Path(__file__).with_name(f"{name}.json").read_text())


def body(name: str) -> MessagesRequest:
    return msgspec.convert(recorded(name), MessagesRequest)


def tools(name: str) -> list[str]:
    options = ToolSet(body(name), UnknownFields({})).options()
    return [tool["function"]["name"] for tool in options["tools"]]


def data_of(events: bytes, name: str) -> Any:
    """Return the data of the first event with this name."""
    lines = events.decode().split("\n")
    return json.loads(lines[lines.index(f"event: {name}") + 1].removeprefix("data: "))


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly_but({"claude_after_call"}, NAMES))
def test_claude_code_is_answered_under_the_name_that_it_sent(tiny_server: Server, name: str) -> None:
    answer = asked(tiny_server.url, "POST", PATH, {**recorded(name), "max_tokens": 8, "model": "claude-x"}, **BETAS)
    assert answer.status == 200
    assert IGNORED_FIELDS_HEADER not in answer.headers
    assert data_of(answer.body, "message_start")["message"]["model"] == "claude-x"
    assert b"event: message_stop\n" in answer.body


@pytest.mark.parametrize("name", NAMES)
def test_the_billing_header_is_not_in_the_prompt(name: str) -> None:
    assert recorded(name)["system"][0]["text"].startswith("x-anthropic-billing-header: ")
    assert "billing" not in str(Conversation(body(name)).messages)


def test_tools_come_after_the_others_when_a_search_has_found_them() -> None:
    before, after = tools("claude_first_turn"), tools("claude_after_tool_search")
    assert before == ["Agent", "Bash", "Read", "ToolSearch"]
    assert after == [*before, "WebFetch", "TaskList"]


@pytest.mark.slow
def test_each_request_of_a_conversation_reads_only_what_is_new(tiny_server: Server) -> None:
    """The billing header differs in each, as it does in Claude Code's interactive sessions."""
    used: list[Any] = []
    for number, name in enumerate(TURNS):
        request: dict[str, Any] = {
            **recorded(name),
            "max_tokens": 1,
            "thinking": {"type": "disabled"},
            "temperature": 0,
        }
        request["system"][0]["text"] += f" cch={number};"
        answer = asked(tiny_server.url, "POST", PATH, request, **BETAS)
        used.append(data_of(answer.body, "message_delta")["usage"])
    prompts = [usage["input_tokens"] + usage["cache_read_input_tokens"] for usage in used]
    assert prompts == sorted(prompts)
    missed = [
        usage
        for before, usage in zip(prompts, used[1:], strict=False)
        if usage["cache_read_input_tokens"] <= 0.9 * before
    ]
    assert [usage["cache_read_input_tokens"] for usage in missed] in ([], [0]), "a hit is computed anew, as a check"
