"""Conversations as clients send them back: captured from their real requests after a tool loop, and trimmed."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from lmwire_http.http.decoding import decode_json
from lmwire_http.http.unknown_fields import IGNORED_FIELDS_HEADER, UnknownFields
from lmwire_http.openai.chat.request import ChatRequest
from lmwire_http.openai.messages import wire_messages
from support.http.http_server import Server
from support.http.raw_http import CHAT, asked

HISTORIES: Final = {
    each["client"]: each["body"] for each in json.loads(Path(__file__).with_name("client_histories.json").read_text())
}
LITELLM_EXTRAS: Final[dict[str, Any]] = {
    "provider_specific_fields": {"refusal": None},
    "thinking_blocks": [{"type": "thinking", "thinking": "I look it up.", "signature": "x"}],
    "images": [],
}
"""Fields that other versions of litellm leave in a message."""


@pytest.mark.parametrize("client", HISTORIES)
def test_a_clients_history_has_no_unknown_field(client: str) -> None:
    body = msgspec.json.encode(HISTORIES[client])
    request = decode_json(body, ChatRequest, UnknownFields({}, strict=True))
    calls = [message for message in wire_messages(request.messages) if message.get("tool_calls")]
    assert [call["name"] for message in calls for call in message.get("tool_calls", ())] == ["weather"]


@pytest.mark.parametrize("client", HISTORIES)
def test_a_clients_history_is_answered(scripted_server: Server, client: str) -> None:
    answer = asked(scripted_server.url, "POST", CHAT, HISTORIES[client])
    assert answer.status == 200, answer
    assert IGNORED_FIELDS_HEADER not in answer.headers


def test_fields_that_a_client_adds_to_the_models_messages_are_ignored(scripted_server: Server) -> None:
    history = HISTORIES["litellm 1.110.2"]
    messages = [
        {**message, **LITELLM_EXTRAS} if message["role"] == "assistant" else message for message in history["messages"]
    ]
    answer = asked(scripted_server.url, "POST", CHAT, {**history, "messages": messages})
    assert answer.status == 200, answer
    assert set(answer.headers[IGNORED_FIELDS_HEADER].split(", ")) == {f"messages[].{name}" for name in LITELLM_EXTRAS}
