"""What an endpoint answers with."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Json:
    """A Struct, or plain data, as JSON."""

    value: Any
    status: int = 200


@dataclass(frozen=True, slots=True)
class Plain:
    """Anything else."""

    content: bytes
    media_type: str = "text/plain; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventStream:
    """Server-sent events, as they come.

    What is raised before the first one is answered as any error; later, as an event of the dialect's.
    """

    frames: AsyncIterator[bytes]
    """Each of one or more whole events. Closed when the client goes."""


Reply: TypeAlias = Json | Plain | EventStream
