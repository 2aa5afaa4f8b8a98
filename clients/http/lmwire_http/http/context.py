"""The context of one HTTP request, as its endpoint sees it."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from time import monotonic

from lmwire_protocol import events

from .app_state import AppState
from .unknown_fields import UnknownFields


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """A request whose body has been read."""

    id: str
    """The request's id, from its X-Request-ID header if it had a valid one."""
    state: AppState
    headers: Mapping[str, str]
    """The request's headers, with names in lower case."""
    path_params: Mapping[str, str]
    """Values of the path's variables."""
    query: Mapping[str, str]
    unknown_fields: UnknownFields
    """Collects the body's unknown fields."""
    client: Hashable = None
    """The client that sent the request; see `client_identity`."""
    started_at: float = field(default_factory=monotonic)
    """Time at which the request's head arrived, by `time.monotonic`."""
    model: str = ""
    """The model's name, for the log and the metrics; empty while it is unknown."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    """Tokens of all finished generations, for the log."""

    def record_usage(self, usage: events.Usage) -> None:
        """Count the tokens of a finished generation, for the log and the metrics."""
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.state.metrics.count_tokens(self.model, usage)
