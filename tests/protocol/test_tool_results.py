"""A tool's message without an id answers the first open call. A quadratic search would exceed the time of a test."""

from lmwire_protocol import CalledTool, Chat, Message
from lmwire_protocol.tool_results import with_call_ids

COUNT = 50_000


def test_a_long_line_of_results_is_matched_in_linear_time() -> None:
    calls = [CalledTool(f"a{index}", "a", {}) for index in range(COUNT)]
    calls += [CalledTool(f"b{index}", "b", {}) for index in range(COUNT)]
    results = [Message("tool", "r", name="b") for _ in range(COUNT)] + [Message("tool", "r") for _ in range(COUNT)]
    found = with_call_ids(Chat(messages=[Message("assistant", tool_calls=calls), *results]))
    assert [message.tool_call_id for message in found.messages[1:]] == [
        *(f"b{index}" for index in range(COUNT)),
        *(f"a{index}" for index in range(COUNT)),
    ]


def test_each_message_with_calls_starts_anew() -> None:
    first, second = (Message("assistant", tool_calls=[CalledTool(id, "look", {})]) for id in ("c1", "c2"))
    found = with_call_ids(Chat(messages=[first, second, Message("tool", "r")]))
    assert found.messages[2].tool_call_id == "c2"
