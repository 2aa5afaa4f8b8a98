"""One call of an endpoint, as the endpoint sees it."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .app_state import Service


@dataclass(slots=True, kw_only=True)
class Call:
    """A request whose body has been read."""

    id: str
    """The request's, of its X-Request-ID header if it had one."""
    service: "Service"
    headers: Mapping[str, str]
    """Names in lower case."""
    path: Mapping[str, str]
    """What the path's variables stand for."""
    query: Mapping[str, str]
    client: Hashable = None
    """Who asks, as far as that can be told; see `clients`."""
    began: float = field(default_factory=monotonic)
    """When the request's head had come, by `time.monotonic`."""
    model: str = ""
    """The model's name, for the log and the metrics; empty while there is none."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    """Of all generations together that have ended, for the log."""
