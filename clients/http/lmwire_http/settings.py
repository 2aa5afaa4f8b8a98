"""Settings of a server. Each has an option of `lmwire serve`."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from lmwire.mcp import McpServerConfig

MIB = 1024 * 1024
ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning", "both"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
MAX_IMAGE_GROUP = 64
"""Largest number of images in a group."""
ANY_ORIGIN = "*"
"""Value in `Settings.cors_origins` for web pages of every origin."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a server."""

    models: tuple[str, ...] = ()
    """Names of the models to serve; any model on this machine if empty."""
    only: bool = True
    """Serve only `models`, if there are any; otherwise also the others on this machine."""
    any_model_name: bool = False
    """Answer requests for any model name with the one model that is served."""
    allow_paths: bool = False
    """Allow requests to name any folder on this machine as their model."""
    download: bool = False
    """Allow downloads of models that are not on this machine."""
    preload: bool = False
    """Load the models before the server is ready."""
    replicas: int = 1
    """Number of workers for each model."""
    memory_bytes: int | Literal["none"] | None = None
    """Memory for all models together, in bytes; no limit if "none"; this machine's default if None."""
    memory_wait_s: float = 60.0
    """Longest wait of a model for memory that models in use hold, in seconds."""
    idle_s: float | None = None
    """Unload a model after this time without a request, in seconds; never if None."""
    load_options: dict[str, Any] = field(default_factory=dict[str, Any])
    """`lmwire.LoadOptions` for every model."""
    generation_config: bool = True
    """Use the sampling defaults of each model's generation_config.json, if the worker can."""
    worker_command: tuple[str, ...] | None = None
    """Command that starts a worker, here or on another machine; this installation's own worker if None."""
    worker_args: tuple[str, ...] = ()
    """Further arguments of the worker command."""

    strict_tools: bool = False
    """Enforce the schemas of tools that do not say whether they are strict."""
    reasoning: Literal["on", "off"] | None = None
    """Reasoning of requests that do not say; the choice of the model if None."""
    force_reasoning: bool = False
    """Apply `reasoning` to all requests."""

    host: str = "127.0.0.1"
    port: int = 8080
    unix_socket: str | None = None
    """Path of a Unix socket to listen on instead of host and port."""
    public: bool = False
    """Serve other machines even without an API key."""
    api_keys: tuple[str, ...] = ()
    """Each key gives access to everything. Without keys, no key is needed."""
    host_names: tuple[str, ...] = ()
    """Names of this server that requests may have as their Host, besides `localhost` and addresses."""
    cors_origins: tuple[str, ...] = ()
    """Origins of web pages that may send requests."""

    default_max_tokens: int | None = None
    """Longest answer of a request that sets no limit, in tokens; that of the API if None."""
    truncate_inputs: bool = False
    """Cut off the ends of texts for /v1/embeddings that are longer than the model takes. Otherwise they are refused."""
    request_templates: bool = False
    """Allow requests to send chat templates. They are programs and take a worker's time."""
    usage_chunk: Literal["empty", "choice"] = "empty"
    """Form of the chunk with a stream's usage: without choices, as in OpenAI's API, or with the last one again."""
    reasoning_field: ReasoningField = "reasoning_content"
    """Name of the reasoning in chat completions: DeepSeek's, the one of newer vLLM and OpenRouter, or both."""
    strict: bool = False
    """Refuse requests with unknown fields. Otherwise those fields are ignored."""
    image_group: int | None = None
    """Maximum number of images in the prompt of a chat completion; no maximum if None. See `chunk` in its request."""
    max_body_bytes: int = 24 * MIB
    """Largest request body, in bytes. A line to a worker may have 32 MiB."""
    max_requests: int = 256
    """Most requests for one model at once. Further ones receive status 429."""
    step_limit_s: float = 300.0
    """Replace a worker that makes no progress on its requests for this time, in seconds; never if 0."""
    keep_alive_s: float = 10.0
    """Time of silence in a stream before an event that says nothing is sent, in seconds."""
    client_timeout_s: float = 60.0
    """Longest pause of a client while it sends a request or reads its response, in seconds."""
    body_timeout_s: float = 300.0
    """Time for a whole request body to arrive, in seconds."""
    max_connections: int = 1024
    """Most open connections. A new one closes the connection that is idle for longest."""
    drain_s: float = 30.0
    """Time for running requests to finish when the server stops, in seconds."""
    stop_at_eof: bool = False
    """Stop when stdin ends."""
    max_stored_responses: int = 1024
    """Most stored responses of /v1/responses."""
    mcp_servers: tuple[McpServerConfig, ...] = ()
    """MCP servers, whose tools clients may call."""
    mcp_timeout_s: float = 120.0
    """Longest time of a call of a tool, in seconds."""
    page: bool = True
    """Serve the chat page to browsers at `/`."""
    log_format: Literal["text", "json"] = "text"
    log_level: LogLevel = "info"
    """Level of the least important lines in the log."""
    otlp_endpoint: str | None = None
    """Base URL of the collector for traces; that of OpenTelemetry's own variables if None."""
    warnings: tuple[str, ...] = ()
    """Sentences for the log, about settings that may be a mistake."""

    @property
    def serves_others(self) -> bool:
        """True if requests can name models that the settings do not name."""
        return not (self.models and self.only)

    @property
    def memory_limit(self) -> int | None:
        """Memory for all models together that the settings give, in bytes."""
        return None if self.memory_bytes == "none" else self.memory_bytes

    @property
    def measures_memory(self) -> bool:
        """True if this machine's default is the limit. Workers of another command may run on another machine."""
        return self.memory_bytes is None and self.worker_command is None
