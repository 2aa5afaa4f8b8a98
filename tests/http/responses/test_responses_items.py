"""Conversion of the items of OpenAI's responses for the model."""

from typing import Any

import pytest

from lmwire_http.errors import ApiError
from lmwire_http.http.unknown_fields import UnknownFields
from lmwire_http.openai.responses.conversation import Conversation
from lmwire_http.openai.responses.items import AdditionalTools, InputItem, ItemReference, read_items

PNG = "data:image/png;base64,iVBORw0KGgo="


def items(input: Any) -> list[InputItem | None]:
    return [item for item in read_items(input, UnknownFields({})) if not isinstance(item, ItemReference)]


def conversation(input: Any, instructions: str | None = None, earlier: Any = ()) -> Conversation:
    return Conversation(instructions, filter(None, items(earlier) if earlier else []), items(input))


def said(text: str, **fields: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "content": [part], **fields}


def reasoning(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def called(id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id, "name": "look", "arguments": '{"at":"it"}', "status": "completed"}


def test_a_text_is_what_the_user_says() -> None:
    assert conversation("Hi").messages == [{"role": "user", "content": "Hi"}]


def test_instructions_are_the_first_message() -> None:
    read = conversation([{"role": "developer", "content": "Be kind."}], instructions="Be brief.")
    assert read.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Be kind."},
    ]


def test_texts_and_images_keep_their_places() -> None:
    content = [
        {"type": "input_text", "text": "This: "},
        {"type": "input_image", "image_url": PNG, "detail": "auto"},
        {"type": "input_image", "image_url": "https://example.com/cat.png", "detail": "low"},
    ]
    assert conversation([{"role": "user", "content": content}]).messages[0].get("content") == [
        {"type": "text", "text": "This: "},
        {"type": "image", "media": {"data": PNG}},
        {"type": "image", "media": {"url": "https://example.com/cat.png"}},
    ]


def test_the_reasoning_text_and_calls_of_a_turn_are_one_message() -> None:
    output = {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "found"}]}
    read = conversation([reasoning("Hm."), said("I look."), called("a"), called("b"), output])
    call = {"name": "look", "arguments": '{"at":"it"}'}
    assert read.messages == [
        {
            "role": "assistant",
            "reasoning": "Hm.",
            "content": "I look.",
            "tool_calls": [{"id": "a", **call}, {"id": "b", **call}],
        },
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "found"}]},
    ]


def test_reasoning_after_an_answer_starts_a_turn() -> None:
    read = conversation([said("One."), reasoning("Then?"), said("Two.")])
    assert read.messages == [
        {"role": "assistant", "content": "One."},
        {"role": "assistant", "reasoning": "Then?", "content": "Two."},
    ]


def test_reasoning_alone_is_a_message_without_text() -> None:
    assert conversation([reasoning("Hm.")]).messages == [{"role": "assistant", "reasoning": "Hm.", "content": ""}]


def test_of_another_services_reasoning_the_summary_is_used() -> None:
    summary = [{"type": "summary_text", "text": "It thought."}]
    [message] = conversation([{"type": "reasoning", "summary": summary, "encrypted_content": "x"}]).messages
    assert message.get("reasoning") == "It thought."


@pytest.mark.parametrize(
    ("wire", "clients"),
    [
        ("messages[0].content", "instructions"),
        ("messages[1].content[0].media.data", "previous_response_id"),
        ("messages[2]", "input[0].content"),
        ("messages[3].content[0].media.url", "input[1].content[0].image_url"),
        ("messages[4].tool_calls[0].arguments", "input[2]"),
        ("messages[5].content", "input[4].output"),
        ("messages[9]", None),
        ("temperature", None),
    ],
)
def test_the_messages_of_the_wire_have_the_clients_names(wire: str, clients: str | None) -> None:
    image = [{"type": "input_image", "image_url": PNG}]
    output = {"type": "function_call_output", "call_id": "a", "output": "found"}
    given = [
        {"role": "user", "content": "Hi"},
        {"role": "user", "content": image},
        said("I look."),
        called("a"),
        output,
    ]
    read = conversation(given, instructions="Be brief.", earlier=[{"role": "user", "content": image}])
    assert read.client_field(wire) == clients


def test_a_custom_call_is_the_call_of_a_function_with_one_text() -> None:
    call = {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": "+x", "status": "completed"}
    output = {"type": "custom_tool_call_output", "call_id": "a", "output": "done"}
    assert conversation([call, output]).messages == [
        {"role": "assistant", "tool_calls": [{"id": "a", "name": "patch", "arguments": {"input": "+x"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "done"},
    ]


def test_a_call_in_a_namespace_has_the_functions_name() -> None:
    [message] = conversation([{**called("a"), "namespace": "agents"}]).messages
    assert [call["name"] for call in message.get("tool_calls", ())] == ["agents__look"]


@pytest.mark.parametrize(
    ("call", "output", "arguments", "result"),
    [
        (
            {"type": "local_shell_call", "call_id": "a", "action": {"type": "exec", "command": ["ls"]}},
            {"type": "local_shell_call_output", "id": "a", "output": "made.txt"},
            '{"type":"exec","command":["ls"]}',
            "made.txt",
        ),
        (
            {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}},
            {"type": "shell_call_output", "call_id": "a", "output": [{"stdout": "made.txt", "stderr": ""}]},
            '{"commands":["ls"]}',
            '[{"stdout":"made.txt","stderr":""}]',
        ),
    ],
)
def test_calls_of_openais_shells_are_read_as_functions(
    call: dict[str, Any], output: dict[str, Any], arguments: str, result: str
) -> None:
    asked, answered = conversation([call, output]).messages
    assert [each["arguments"] for each in asked.get("tool_calls", ())] == [arguments]
    assert answered == {"role": "tool", "tool_call_id": "a", "content": result}


def test_items_without_a_text_to_read_are_left_out_and_named() -> None:
    unknown = UnknownFields({})
    hosted = [{"type": "web_search_call", "id": "ws_1", "action": {}}, {"type": "image_generation_call", "result": "x"}]
    first, second, third = read_items([*hosted, {"role": "user", "content": "Hi"}], unknown)
    assert (first, second) == (None, None) and third is not None
    assert [*unknown.ignored] == ["input[].web_search_call", "input[].image_generation_call"]


@pytest.mark.parametrize("field", ["content", "output", "encrypted_content"])
def test_an_item_of_an_unknown_type_with_something_to_read_is_refused(field: str) -> None:
    with pytest.raises(ApiError, match="send it as a message") as refused:
        items([{"role": "user", "content": "Hi"}, {"type": "compaction", field: "x"}])
    assert refused.value.param == "input[1].type"


def test_a_conversation_without_anything_to_read_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        conversation([{"type": "web_search_call", "id": "ws_1"}])
    assert refused.value.param == "input"


def test_the_message_of_an_agent_is_the_users_with_what_was_not_encrypted() -> None:
    content = [
        {"type": "input_text", "text": "Payload:"},
        {"type": "encrypted_content", "encrypted_content": "say ready"},
    ]
    item = {"type": "agent_message", "author": "/root", "recipient": "/root/a", "content": content}
    [message] = conversation([item]).messages
    assert message["role"] == "user"
    assert "Payload:" in str(message.get("content")) and "say ready" in str(message.get("content"))


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ({"type": "agent_message", "content": [{"type": "encrypted_content"}]}, "input[0].content[0].type"),
        ({"type": "agent_message"}, "input[0].content"),
        ({"type": "shell_call", "action": {}}, "input[0].call_id"),
        ({"type": "additional_tools", "tools": [{"type": "custom"}]}, "input[0].tools[0].name"),
        ({"type": "additional_tools", "tools": [5]}, "input[0].tools[0]"),
        ({"type": "additional_tools"}, "input[0].tools"),
    ],
)
def test_an_invalid_item_is_named(item: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        items([item])
    assert refused.value.param == param


def test_additional_tools_are_no_message_and_hosted_ones_are_left_out() -> None:
    unknown = UnknownFields({})
    tools = [{"type": "web_search"}, {"name": "look"}]
    read = read_items([{"type": "additional_tools", "role": "developer", "tools": tools}], unknown)
    [item] = read
    assert isinstance(item, AdditionalTools)
    assert [tool and tool.name for tool in item.tools] == [None, "look"]
    assert [*unknown.ignored] == ["input[].tools[].web_search"]
