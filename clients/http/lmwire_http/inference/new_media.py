"""Refuse new images and sounds that a model does not take. Those of earlier turns become a note in the prompt."""

from collections.abc import Container, Iterator, Sequence
from typing import Any, Final, TypeAlias, cast

from lmwire import MessageDict

from ..errors import ApiError, RenameField

_CAPABILITIES: Final = {"image": "images", "audio": "sounds"}
"""The capability that a model needs for each type of part."""
Place: TypeAlias = tuple[str, Any]
"""The path of a part, and the part."""


def check_new_media(messages: Sequence[MessageDict], capabilities: Container[str], rename: RenameField) -> None:
    """Check that a model takes the images and sounds of the turn that it answers.

    Earlier turns are not checked, so that a conversation can go on with another model. Results of tools are not either:
    the model asked for them, and an agent cannot take one back.

    Args:
        messages: The conversation.
        capabilities: The model's capabilities.
        rename: Maps field paths to those of the client.

    Raises:
        ApiError: The model does not take an image or a sound.
    """
    for path, part in new_media(messages, without_role="tool"):
        capability = _CAPABILITIES[part["type"]]
        if capability not in capabilities:
            field = rename(path) or path
            problem = (
                f"{field}: this model takes no {capability}; name a model that does (its worker needs lmwire[vision]), "
                "or set strict_media to false"
            )
            raise ApiError(400, problem, code="unsupported", param=field)


def has_media(messages: Sequence[MessageDict]) -> bool:
    """Return whether a conversation has images or sounds, of any turn.

    Args:
        messages: The conversation.
    """
    contents: list[Any] = [message.get("content") for message in messages]
    return any(
        part["type"] in _CAPABILITIES
        for content in contents
        if isinstance(content, list)
        for part in cast(list[Any], content)
    )


def last_answer(messages: Sequence[MessageDict]) -> int:
    """Return the index of the last message of the assistant; -1 if there is none."""
    return max((index for index, message in enumerate(messages) if message["role"] == "assistant"), default=-1)


def new_media(messages: Sequence[MessageDict], without_role: str | None = None) -> Iterator[Place]:
    """Yield the images and sounds after the last answer, in order.

    Args:
        messages: The conversation.
        without_role: The role of messages that are passed over; None if there is none.
    """
    for index in range(last_answer(messages) + 1, len(messages)):
        content: Any = messages[index].get("content")
        if not isinstance(content, list) or messages[index]["role"] == without_role:
            continue
        for at, part in enumerate(cast(list[Any], content)):
            if part["type"] in _CAPABILITIES:
                yield f"messages[{index}].content[{at}]", part
