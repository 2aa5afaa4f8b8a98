"""Images and sounds in requests: those that a URL or a path names, and those that the model must take."""

from collections.abc import Container, Iterator, Sequence
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from lmwire import MediaDict, MessageDict

from ..errors import ApiError, RenameField, invalid_field

_URL_SCHEMES: Final = frozenset({"http", "https"})
_LOCAL_HOSTS: Final = frozenset({"", "localhost"})
_SUFFIX_CHARACTERS: Final = 16
"""Characters at a path's end that contain the dot of its suffix, such as `.flac`."""
_CAPABILITIES: Final = {"image": "images", "audio": "sounds"}
"""The capability that a model needs for each type of part."""
Place: TypeAlias = tuple[str, Any]
"""The path of a part, and the part."""


def media_reference(name: str, field: str) -> MediaDict | None:
    """Return the media that a URL names; None if the text is not a URL.

    Args:
        name: The text in the request.
        field: The path of the field that holds it.

    Raises:
        ApiError: The URL names a file on another machine.
    """
    scheme = name.partition(":")[0].lower()
    if scheme in _URL_SCHEMES:
        return {"url": name}
    if scheme != "file":
        return None
    host, path = _host_and_path(name)
    if host not in _LOCAL_HOSTS or not path.startswith("/"):
        problem = "a file's URL names a file on the server's machine, such as file:///pictures/cat.png"
        raise invalid_field(f"{field}: {problem}", field)
    return {"path": path}


def image_input(name: str, field: str) -> MediaDict:
    """Return the image that a data URI holds, or that a URL or an absolute path names.

    Args:
        name: The text in the request.
        field: The path of the field that holds it.

    Raises:
        ApiError: The text is none of these.
    """
    if name[:5].lower() == "data:":
        return {"data": name}
    if name.startswith("/"):
        return {"path": name}
    if media := media_reference(name, field):
        return media
    problem = "must be a data URI, such as data:image/png;base64,…, an http or https address, or a file's absolute path"
    raise invalid_field(f"{field}: {problem}", field)


def audio_input(data: str, field: str) -> MediaDict:
    """Return the audio that base64 holds, or that a URL or an absolute path names.

    Base64 may also start with a slash, but unlike the name of a sound's file it has no dot.

    Args:
        data: The text in the request.
        field: The path of the field that holds it.

    Raises:
        ApiError: The URL names a file on another machine.
    """
    if data.startswith("/") and "." in data[-_SUFFIX_CHARACTERS:]:
        return {"path": data}
    return media_reference(data, field) or {"data": data}


def _host_and_path(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, ""
    return parts.netloc.lower(), unquote(parts.path)


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
