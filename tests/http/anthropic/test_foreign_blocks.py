"""Blocks that only Anthropic's servers write, and that Claude Code sends: the model reads what is text in them."""

from typing import Any

import msgspec
import pytest

from lmwire_http.anthropic.conversation import Conversation
from lmwire_http.anthropic.request import CountTokensRequest
from support.http.anthropic_http import user

SEARCHED: list[Any] = [
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "milk"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "s",
        "content": [
            {
                "type": "web_search_result",
                "title": "Milk",
                "url": "milk.org",
                "encrypted_content": "x",
                "page_age": None,
            }
        ],
    },
]


def conversation(messages: Any, **fields: Any) -> Conversation:
    return Conversation(msgspec.convert({"model": "m", "messages": messages, **fields}, CountTokensRequest))


def text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def answered(*blocks: Any) -> str:
    read = conversation([{"role": "assistant", "content": [*blocks]}, user("And?")])
    content: Any = read.messages[0].get("content")
    return content


def result(type: str, content: Any) -> dict[str, Any]:
    return {"type": type, "tool_use_id": "s", "content": content}


def test_a_search_by_another_service_is_text() -> None:
    assert answered(text("I look."), *SEARCHED, text("White.")) == (
        'I look.\n[web_search: {"query": "milk"}]\n\nMilk\nmilk.org\nWhite.'
    )


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (result("web_search_tool_result", {"type": "web_search_tool_result_error", "error_code": "busy"}), "busy"),
        (
            result(
                "web_fetch_tool_result",
                {
                    "type": "web_fetch_result",
                    "url": "milk.org",
                    "content": {
                        "type": "document",
                        "title": "Milk",
                        "source": {"type": "text", "media_type": "text/plain", "data": "White."},
                    },
                },
            ),
            "milk.org\nMilk\nWhite.",
        ),
        (
            result("code_execution_tool_result", {"type": "code_execution_result", "stdout": "4", "stderr": "hm"}),
            "4\nhm",
        ),
        (result("bash_code_execution_tool_result", {"stdout": "ok", "return_code": 0, "content": []}), "ok"),
        (result("text_editor_code_execution_tool_result", {"content": "a file"}), "a file"),
        (result("mcp_tool_result", [text("rain")]), "rain"),
        (
            result("tool_search_tool_result", {"tool_references": [{"type": "tool_reference", "tool_name": "look"}]}),
            "look",
        ),
    ],
)
def test_the_result_of_a_tool_that_ran_elsewhere_is_text(block: Any, expected: str) -> None:
    assert answered(block) == f"\n{expected}\n"


def test_a_result_that_is_nested_too_deeply_is_cut() -> None:
    content: Any = "deep"
    for _ in range(100):
        content = {"content": content}
    assert answered(result("web_fetch_tool_result", content)) == "\n"


def test_a_call_of_an_mcp_server_and_a_summary_are_text() -> None:
    call = {"type": "mcp_tool_use", "id": "m", "name": "weather", "server_name": "sky", "input": {}}
    assert answered({"type": "compaction", "content": "So far."}, call) == "So far.\n[weather: {}]\n"


def test_a_file_for_code_elsewhere_is_dropped() -> None:
    upload = {"type": "container_upload", "file_id": "f"}
    assert conversation([user([upload, text("Hi")])]).messages == [{"role": "user", "content": [text("Hi")]}]


def test_a_reference_to_a_tool_is_text_in_its_result() -> None:
    found = [{"type": "tool_reference", "tool_name": name} for name in ("look", "see")]
    read = conversation([user([{"type": "tool_result", "tool_use_id": "a", "content": found}])])
    assert read.messages[0].get("content") == [
        text("The tool look is available now.\n"),
        text("The tool see is available now.\n"),
    ]


def test_changes_of_the_tools_are_text_in_their_instruction() -> None:
    blocks = [
        text("Note:"),
        {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "look"}},
        {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": "see"}}},
        {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "hear"}},
    ]
    read = conversation([user("Hi"), {"role": "system", "content": blocks}])
    assert read.messages[1].get("content") == (
        "Note:\nThe tool look is available now.\nThe tool see is available now.\nThe tool hear is no longer available."
    )


# Claude Code's billing header.


@pytest.mark.parametrize(
    "header",
    [
        "x-anthropic-billing-header: cc_version=2.1.331.317; cc_entrypoint=sdk-cli;",
        "x-anthropic-billing-header: cc_version=2.1.331.317; cc_entrypoint=cli; cch=00000; cc_prev_msg=msg_1;",
    ],
)
def test_a_block_that_differs_in_each_request_is_left_out_of_the_system_prompt(header: str) -> None:
    read = conversation([user("Hi")], system=[text(header), text("Be brief.")])
    assert read.messages[0] == {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize(
    "other",
    [
        "x-anthropic-billing-header: explain this header to me",
        "x-anthropic-billing-header: cc_version=1;\nBe kind.",
        " x-anthropic-billing-header: cc_version=1;",
        "Of x-anthropic-billing-header: cc_version=1;",
    ],
)
def test_no_other_block_is_left_out(other: str) -> None:
    read = conversation([user("Hi")], system=[text(other), text("Be brief.")])
    assert read.messages[0] == {"role": "system", "content": f"{other}Be brief."}


def test_a_system_prompt_of_that_block_alone_is_none() -> None:
    header = "x-anthropic-billing-header: cc_version=2.1.331.317;"
    assert conversation([user("Hi")], system=[text(header)]).messages == [{"role": "user", "content": "Hi"}]
