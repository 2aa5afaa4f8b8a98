"""How a server is to serve. `lmwire serve` has an option for each."""

from dataclasses import dataclass, field
from typing import Any, Literal

MIB = 1024 * 1024
ANY_ORIGIN = "*"
"""In `Settings.cors`: pages of every origin."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What `lmwire serve` was told."""

    models: tuple[str, ...] = ()
    """Names of the models to serve; any on this machine when empty."""
    allow_paths: bool = False
    """Whether a request may name any folder of this machine as its model."""
    download: bool = False
    """Whether a model that is not on this machine may be fetched from the hub."""
    preload: bool = False
    """Load the models before the server is ready."""
    replicas: int = 1
    """Workers of each model."""
    memory_bytes: int | None = None
    """For all models together; as much as there is when None."""
    room_s: float = 60.0
    """That a model waits for memory which others have that are in use."""
    idle_s: float | None = None
    """A model that nobody asked for so long is unloaded; never when None."""
    load: dict[str, Any] = field(default_factory=dict)
    """`lmwire.LoadOptions` for every model."""
    command: tuple[str, ...] | None = None
    """The program that is a worker, or leads to one; this installation's own when None."""
    worker: tuple[str, ...] = ()
    """Further arguments of it."""

    host: str = "127.0.0.1"
    port: int = 8080
    uds: str | None = None
    """The path of a Unix socket to listen on, instead of host and port."""
    public: bool = False
    """Whether other machines may be served without an API key."""
    api_keys: tuple[str, ...] = ()
    """Any of them opens everything; without one everything is open."""
    host_names: tuple[str, ...] = ()
    """Names of this server, besides `localhost` and addresses, that a request may have as its Host."""
    cors: tuple[str, ...] = ()
    """Origins of pages that may ask."""

    request_templates: bool = False
    """Whether a request may bring a chat template of its own: a program, which takes a worker's time."""
    body_bytes: int = 24 * MIB
    """Of a request, at most. A worker's line holds 32 MiB."""
    queue: int = 256
    """Requests of one model at once; more are told to come again."""
    step_limit_s: float = 300.0
    """Without progress, after which a worker that requests wait for counts as hung and is replaced; 0 is never."""
    keep_alive_s: float = 10.0
    """Of silence in a stream, until a comment is sent."""
    patience_s: float = 60.0
    """For a client that stops in the middle, sending a request or reading its answer."""
    body_s: float = 300.0
    """Total time in which a request's body must arrive."""
    connections: int = 1024
    """Open connections, at most. For a new one the connection that is idle for longest is closed."""
    drain_s: float = 30.0
    """For running requests when the server ends."""
    stored: int = 1024
    """Responses that are kept to be continued, at most."""
    log_format: Literal["text", "json"] = "text"
    warnings: tuple[str, ...] = ()
    """Sentences for the log: settings that the operator may not have meant."""
