"""What a lesson makes."""

from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
Tool = dict[str, Any]


@dataclass
class Example:
    """A request to the model and the answer that it should give.

    Attributes:
        ability: What it exercises; scores are kept by ability.
        messages: In the chat format of the field, the newest last.
        answer: The text of the whole turn, without the token that ends it.
        thinking: Whether the request has thinking on; None when the answer is the same either way.
        tools: Function tools in the chat format of the field.
        settled: Nothing may be put in front of the messages.
        schema: Of JSON that the request holds the answer to. The model does not see it.
    """

    ability: str
    messages: list[Message]
    answer: str
    thinking: bool | None = None
    tools: list[Tool] = field(default_factory=list)
    settled: bool = False
    schema: dict[str, Any] | None = None


def asked(ability: str, question: str, answer: str) -> Example:
    """An example of one question."""
    return Example(ability, [user(question)], answer)


def user(content: str) -> Message:
    """A turn of the user."""
    return {"role": "user", "content": content}


def assistant(content: str) -> Message:
    """An earlier turn of the model."""
    return {"role": "assistant", "content": content}
