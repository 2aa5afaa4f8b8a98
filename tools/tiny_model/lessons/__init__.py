"""Make the training text of the built-in model, and the held-out prompts of its evaluation."""

from typing import Final

from . import about, arithmetic, languages, protocol, repeating, structured, tools
from .example import Example, Message, Tool
from .source import Source

__all__ = ["LESSONS", "Example", "Message", "Source", "Tool", "make"]

LESSONS: Final = {
    about.greeting: 5,
    about.unknown: 3,
    about.name: 4,
    protocol.command: 4,
    protocol.event: 2,
    protocol.code: 5,
    protocol.more: 5,
    arithmetic.addition: 8,
    arithmetic.subtraction: 12,
    arithmetic.comparison: 8,
    repeating.repeating: 8,
    repeating.times: 2,
    repeating.counting: 4,
    repeating.how_many: 3,
    languages.emoji: 3,
    languages.translation: 3,
    languages.foreign_greeting: 1,
    structured.structured: 18,
    structured.held: 7,
    tools.one_call: 18,
    tools.two_calls: 12,
    tools.no_call: 15,
    tools.result: 10,
    tools.follow_up: 3,
}
"""The lessons, and their relative frequencies."""

_SYSTEMS: Final = (
    "You are a helpful assistant.", "You are helpful.", "Answer briefly.", "You are a tiny model.", "Be kind.",
    "You are an assistant that answers questions.", "Be concise.", "You are a test model.", "Answer in English.",
    "You are a friendly assistant.",
)  # fmt: skip


def make(source: Source) -> Example:
    """Return an example of a random lesson. Some have earlier turns, a system prompt, or tools that do not matter."""
    lesson = source.random.choices(list(LESSONS), list(LESSONS.values()))[0]
    example = lesson(source)
    if example.thinking is None:
        example.thinking = source.chance(0.5)
    if example.settled:
        return example
    if not example.tools and source.chance(0.4):
        example.messages = _talk(source) + example.messages
    if not example.tools and source.chance(0.1) and lesson not in (about.unknown, languages.translation):
        example.tools = tools.some_tools(source)
    if source.chance(0.25):
        example.messages = [{"role": "system", "content": source.one(_SYSTEMS)}, *example.messages]
    return example


def _talk(source: Source) -> list[Message]:
    """Return earlier turns."""
    plain = [lesson for lesson in LESSONS if lesson.__module__ != tools.__name__]
    messages: list[Message] = []
    for _ in range(source.any((1, 1, 1, 2, 2, 3, 4, 6))):
        earlier = source.any(plain)(source)
        if not earlier.settled:
            answer = earlier.answer.split("</think>\n\n")[-1]
            messages += [*earlier.messages, {"role": "assistant", "content": answer}]
    return messages
