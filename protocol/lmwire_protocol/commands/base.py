"""The base class and number types of all commands."""

from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from .. import events
from ..limits import MAX_INT

NonNegative = Annotated[int, Meta(ge=0, le=MAX_INT)]
Positive = Annotated[int, Meta(ge=1, le=MAX_INT)]


class Command(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """Base class of all commands. A subclass's docstring is its description in the schema."""

    name: ClassVar[str]
    """The value of `cmd`."""
    done: ClassVar[type[events.Done]]
    """The Struct of this command's `done` event."""
    streams: ClassVar[tuple[type[events.Event], ...]] = ()
    """Events that may come before the terminal."""
    out_of_band: ClassVar[bool] = False
    """True if the worker's reader answers the command at once, whatever the engine does. It cannot be cancelled."""
    barrier: ClassVar[bool] = False
    """True if the command waits for all earlier requests, and later requests wait for it."""
