"""Conversations of files, and the search in texts: the page's own modules without a browser."""

import json
from typing import Any

import pytest

from support.page.modules import in_node

pytestmark = pytest.mark.slow

READ = """
const { readConversations } = await load("conversation/importing.js");
try {
    return readConversations(given);
} catch (error) {
    return error.message;
}
"""
SEARCH = """
const { excerpt, periodOf } = await load("conversation/search.js");
const now = new Date(2026, 10, 26, 12);
return [
    given.texts.map((text) => excerpt(text, "needle")),
    given.days.map((days) => periodOf(new Date(2026, 10, 26 - days, 13).getTime(), now)),
];
"""


def node(parent: str | None, role: str = "", text: str = "", **message: Any) -> dict[str, Any]:
    """Return a node of ChatGPT's export."""
    content = {"content_type": "text", "parts": [text]}
    return {"parent": parent, "message": {"author": {"role": role}, "content": content, **message} if role else None}


CHATGPT = {
    "conversation_id": "c-1",
    "title": "Sorting",
    "create_time": 1700000000.5,
    "update_time": 1700000100,
    "current_node": "answer-2",
    "mapping": {
        "root": node(None),
        "system": node("root", "system", "You are ChatGPT."),
        "question": node("system", "user", "How?", create_time=1700000001),
        "answer-1": node("question", "assistant", "So.", metadata={"model_slug": "gpt-4o"}),
        "tool": node("question", "tool", "searched"),
        "answer-2": node("tool", "assistant", "Or so."),
    },
}

OWN_NULL = {"format": "lmwire-conversations", "conversations": [{"messages": [None]}]}
OTHER_NULL = [{"mapping": {"x": None}}]


def read(content: Any) -> Any:
    return in_node(READ, content if isinstance(content, str) else json.dumps(content))


def test_an_export_of_chatgpt_keeps_titles_times_and_branches() -> None:
    [found] = read([CHATGPT])
    conversation, messages = found["conversation"], found["messages"]
    assert [conversation[name] for name in ("id", "title", "created", "updated")] == [
        "c-1",
        "Sorting",
        1700000000500,
        1700000100000,
    ]
    question, first, second = messages
    assert [each["role"] for each in messages] == ["user", "assistant", "assistant"]
    assert question["parent"] is None
    assert first["parent"] == second["parent"] == question["id"]
    assert first["created"] < second["created"]  # neither has a time of its own
    assert (first["model"], second["content"], conversation["leaf"]) == ("gpt-4o", "Or so.", second["id"])
    assert {each["conversation"] for each in messages} == {"c-1"}


def test_an_own_export_is_read_without_fields_that_the_page_does_not_know() -> None:
    image = {"kind": "image", "name": "a.png", "data": "data:image/png;base64,AA", "onload": "x"}
    foreign = {"kind": "image", "name": "b.png", "data": "https://tracker.example/b.png"}
    messages = [
        {"id": "1", "parent": None, "role": "user", "content": "Hi", "created": 5, "attachments": [image, foreign]},
        {"id": "2", "parent": "1", "role": "assistant", "content": "Yes", "created": 6, "state": "running", "tab": "t"},
        {"id": "3", "parent": "2", "role": "system", "content": "no"},
        "nonsense",
    ]
    talk = {"id": "c", "title": "T", "created": 5, "updated": 6, "leaf": "2", "messages": messages, "evil": 1}
    [found] = read({"format": "lmwire-conversations", "version": 1, "conversations": [talk, {"id": "empty"}]})
    user, answer = found["messages"]
    assert user["attachments"] == [{"kind": "image", "name": "a.png", "data": "data:image/png;base64,AA"}]
    assert (answer["state"], answer.get("tab"), answer["parent"]) == ("done", None, user["id"])
    assert found["conversation"] == {"id": "c", "title": "T", "created": 5, "updated": 6, "leaf": answer["id"]}


def test_a_message_that_is_its_own_ancestor_is_refused_and_a_lost_parent_is_none() -> None:
    loop = {"x": node("y", "user", "a"), "y": node("x", "assistant", "b")}
    assert read([{"id": "l", "mapping": loop}]) == []
    [found] = read([{"id": "l", "mapping": {"x": node("gone", "user", "a")}}])
    assert found["messages"][0]["parent"] is None
    assert found["conversation"]["leaf"] == found["messages"][0]["id"]


@pytest.mark.parametrize("content", ["{", {"format": "other"}, [{"no": "mapping"}], "null", "3", OWN_NULL, OTHER_NULL])
def test_another_file_is_refused_with_the_kinds_that_are_read(content: Any) -> None:
    assert "Choose an export of this page, or conversations.json of ChatGPT's export." in read(content)


def test_a_text_that_is_found_is_shown_with_its_surroundings() -> None:
    texts = ["a NEEDLE here", "x" * 50 + "needle" + "y" * 90, "nothing", ""]
    [parts, periods] = in_node(SEARCH, {"texts": texts, "days": [0, 1, 2, 6, 7, 29, 60, -1]})
    assert parts[0] == {"before": "a ", "found": "NEEDLE", "after": " here"}
    assert parts[1] == {"before": "…" + "x" * 30, "found": "needle", "after": "y" * 70 + "…"}
    assert parts[2:] == [None, None]
    assert periods == ["Today", "Yesterday", "Last 7 days", "Last 7 days", "Last 30 days", "Last 30 days",
                       "September 2026", "Today"]  # fmt: skip
