"""The base classes and number types of all events."""

from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=0)]
Milliseconds = Annotated[float, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]
"""A time within a recording."""


class Event(Struct, omit_defaults=True, tag_field="event"):
    """Base class of all events."""


class Done(Event, tag="done", kw_only=True):
    """The success of a request, and its terminal. Each command has its own form."""

    id: str
    cmd: str | None = None
    """The command that it ends. Present if the worker lists `done.cmd`."""


class Error(Event, tag="error", kw_only=True):
    """The failure of a request, and its terminal if the error has an id."""

    id: str | None = None
    error: str
    """A sentence for a person, at most 4 KiB."""
    code: str
    retryable: bool
    """True if the same request can succeed later."""
    field: str | None = None
    """The path of the field at fault, such as `messages[2].content[0]`."""
    bad_id: str | None = None
    """An id that the line names. This error does not end the request with that id."""
    protocols: list[int] | None = None
    """With `unsupported_protocol`: the versions that the worker speaks."""
    loaded: bool | None = None
    """With a failed load: true if the earlier model is still loaded."""
