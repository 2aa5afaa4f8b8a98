"""Conversion of the blocks in Anthropic's messages for the model."""

from pathlib import Path
from typing import Any

import anthropic
import msgspec
import pytest

from lmwire_http.anthropic.conversation import Conversation
from lmwire_http.anthropic.request import CountTokensRequest
from random_vision import write_vision_model
from support.http.anthropic_http import MODEL, client, user
from support.http.http_server import Server, served
from support.media.reading_media import encoded, in_base64, picture

PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


def conversation(messages: Any, **fields: Any) -> Conversation:
    return Conversation(msgspec.convert({"model": "m", "messages": messages, **fields}, CountTokensRequest))


def text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def said(content: Any) -> Any:
    return conversation([user(content)]).messages[0].get("content")


def test_the_system_prompt_is_the_first_message() -> None:
    read = conversation([user("Hi")], system=[text("Be brief. "), text("Be kind.")])
    assert read.messages == [
        {"role": "system", "content": "Be brief. Be kind."},
        {"role": "user", "content": "Hi"},
    ]


def test_images_keep_their_places_among_the_texts() -> None:
    address = {"type": "url", "url": "https://example.com/cat.png"}
    content = [text("This: "), {"type": "image", "source": PNG}, text(" or "), {"type": "image", "source": address}]
    assert said(content) == [
        text("This: "),
        {"type": "image", "media": {"data": "iVBORw0KGgo="}},
        text(" or "),
        {"type": "image", "media": {"url": "https://example.com/cat.png"}},
    ]


def test_a_document_is_its_title_context_and_text() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "Milk."}
    document = {"type": "document", "title": "List", "context": "Of today", "source": source}
    assert "".join(part["text"] for part in said([document])) == "List\nOf today\nMilk.\n"


def test_a_document_in_blocks_keeps_its_images() -> None:
    source = {"type": "content", "content": [text("Milk."), {"type": "image", "source": PNG}]}
    parts = said([{"type": "document", "source": source}])
    assert [part["type"] for part in parts] == ["text", "text", "image", "text"]


def test_a_search_result_keeps_its_source() -> None:
    found = {"type": "search_result", "title": "Milk", "source": "milk.org", "content": [text("White."), text("Wet.")]}
    assert said([found]) == [text("Milk\nmilk.org\nWhite.\nWet.\n")]


def test_results_are_messages_of_their_own_at_their_places() -> None:
    results = [
        {"type": "tool_result", "tool_use_id": "a", "content": "rain"},
        {"type": "tool_result", "tool_use_id": "b", "content": [text("sun")], "is_error": True},
        {"type": "tool_result", "tool_use_id": "c"},
    ]
    assert conversation([user([*results, text("And?")])]).messages == [
        {"role": "tool", "tool_call_id": "a", "content": [text("rain")]},
        {"role": "tool", "tool_call_id": "b", "content": [text("Error: "), text("sun")]},
        {"role": "tool", "tool_call_id": "c", "content": [text("")]},
        {"role": "user", "content": [text("And?")]},
    ]


def test_an_earlier_answer_has_its_reasoning_its_text_and_its_calls() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm.", "signature": "unsigned"},
        {"type": "redacted_thinking", "data": "xyz"},
        text("I look."),
        {"type": "tool_use", "id": "a", "name": "look", "input": {"at": "it"}},
    ]
    assert conversation([{"role": "assistant", "content": blocks}, user("And?")]).messages[0] == {
        "role": "assistant",
        "content": "I look.",
        "reasoning": "Hm.",
        "tool_calls": [{"id": "a", "name": "look", "arguments": {"at": "it"}}],
    }


def test_the_last_answer_is_how_the_next_one_begins() -> None:
    read = conversation([user("2 + 2?"), {"role": "assistant", "content": [text("It "), text("is")]}])
    assert (read.prefix, len(read.messages)) == ("It is", 1)


@pytest.mark.parametrize(
    ("wire", "clients"),
    [
        ("messages[0].content", "system"),
        ("messages[1]", "messages[0]"),
        ("messages[2].content[1].media.data", "messages[1].content[0].content[1].source.data"),
        ("messages[3].content[0].text", "messages[1].content[1].text"),
        ("messages[4].tool_calls[0].arguments", "messages[2].content[1].input"),
        ("messages[5].content[0].media.url", "messages[3].content[0].source.url"),
        ("prefix", "messages[4].content"),
        ("stop[1]", "stop_sequences[1]"),
        ("format.schema.properties.age", "output_config.format.schema.properties.age"),
        ("tool_choice.name", "tool_choice.name"),
        ("parallel_tool_calls", "tool_choice.disable_parallel_tool_use"),
        ("reasoning", "thinking"),
        ("reasoning_effort", "output_config.effort"),
        ("reasoning_budget", "thinking.budget_tokens"),
        ("temperature", "temperature"),
    ],
)
def test_the_fields_of_the_wire_have_the_clients_names(wire: str, clients: str) -> None:
    image = {"type": "image", "source": PNG}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [text("See:"), image]}
    read = conversation(
        [
            user("Hi"),
            user([result, text("And?")]),
            {"role": "assistant", "content": [text("x"), {"type": "tool_use", "id": "b", "name": "n", "input": {}}]},
            user([image]),
            {"role": "assistant", "content": "So"},
        ],
        system="Be brief.",
    )
    assert read.client_field(wire) == clients


def test_an_image_that_the_model_does_not_see_is_refused_unless_a_note_of_it_will_do(scripted_server: Server) -> None:
    content = [{"type": "image", "source": PNG}, text("look here")]
    options: Any = {"model": MODEL, "max_tokens": 20, "messages": [user(content)]}
    with pytest.raises(anthropic.BadRequestError, match=r"messages\[0\]\.content\[0\]"):
        client(scripted_server).messages.create(**options)
    answer: Any = client(scripted_server).messages.create(**options, extra_body={"strict_media": False})
    assert "[1 image was attached]" in answer.content[0].text


@pytest.mark.slow
def test_a_model_that_sees_is_shown_images_and_a_broken_one_is_named(tmp_path: Path) -> None:
    folder = str(write_vision_model(tmp_path / "qwen2_5_vl", "qwen2_5_vl"))
    options: Any = {"model": folder, "max_tokens": 1}
    broken = user([text("And this?"), {"type": "image", "source": PNG}])
    seen = user([{"type": "image", "source": {**PNG, "data": in_base64(encoded(picture(size=(96, 64))))}}])
    with served(folder) as server:
        sees = client(server)
        with pytest.raises(anthropic.BadRequestError, match=r"messages\[1\]\.content\[1\]\.source\.data"):
            sees.messages.create(messages=[user("Hi"), broken], **options)
        counted = sees.messages.count_tokens(model=folder, messages=[seen])
        assert sees.messages.create(messages=[seen], **options).usage.input_tokens == counted.input_tokens > 12
