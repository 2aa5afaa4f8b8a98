"""An example: the product of a lesson."""

from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
Tool = dict[str, Any]


@dataclass
class Example:
    """A request to the model and the answer that it should give.

    Attributes:
        ability: The ability that it exercises. Each ability has a score.
        messages: In the chat format of the field, the newest last.
        answer: The text of the whole turn, without the token that ends it.
        thinking: Whether the request has thinking on; None when the answer is the same either way.
        tools: Function tools in the chat format of the field.
        settled: True if no turns may come before the messages.
        schema: The JSON Schema that the request enforces. The model does not see it.
    """

    ability: str
    messages: list[Message]
    answer: str
    thinking: bool | None = None
    tools: list[Tool] = field(default_factory=list)
    settled: bool = False
    schema: dict[str, Any] | None = None


def asked(ability: str, question: str, answer: str) -> Example:
    """Return an example of one question.

    Args:
        ability: The ability that it exercises.
        question: The user's message.
        answer: The model's answer.
    """
    return Example(ability, [user(question)], answer)


def user(content: str) -> Message:
    """Return a turn of the user."""
    return {"role": "user", "content": content}


def assistant(content: str) -> Message:
    """Return an earlier turn of the model."""
    return {"role": "assistant", "content": content}
