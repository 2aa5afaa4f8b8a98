"""Options of `lmwire serve` for the server: its address, access to it, and limits on requests and connections."""

from pathlib import Path
from typing import get_args

from lmwire.cli.option_sources import Flag

from ..settings import MIB, LogLevel, Settings
from .arg_types import (
    ArgumentGroup,
    collector_url,
    count,
    duration,
    host_name,
    image_count,
    origin,
    port,
    positive_duration,
    size,
)


def add_access(group: ArgumentGroup, defaults: Settings) -> None:
    """Add the options that choose the address and who may send requests."""
    group.add_argument("--host", help=f"the address to listen on (default: {defaults.host}, only this machine)")
    group.add_argument("--port", type=port, help=f"the port; 0 takes a free one (default: {defaults.port})")
    group.add_argument(
        "--host-name",
        dest="host_names",
        action="append",
        type=host_name,
        metavar="NAME",
        help="another name of this server, such as studio.local, needed without an API key; repeat for more",
    )
    group.add_argument(
        "--uds", dest="unix_socket", metavar="PATH", help="listen on a Unix socket that only this user can open"
    )
    group.add_argument("--public", action=Flag, help="serve other machines without an API key")
    group.add_argument(
        "--api-key",
        action="append",
        default=[],
        metavar="KEY",
        help="require this key; repeat for more. Other users of this machine can see it: better use "
        "$LMWIRE_API_KEY or --api-key-file",
    )
    group.add_argument("--api-key-file", type=Path, metavar="FILE", help="require one of the keys in this file")
    group.add_argument(
        "--cors",
        dest="cors_origins",
        action="append",
        type=origin,
        metavar="ORIGIN",
        help="allow web pages of this origin, such as http://localhost:3000, or of any with '*'; repeat for more",
    )
    group.add_argument("--page", action=Flag, default=defaults.page, help="serve the chat page at / (default: on)")
    group.add_argument(
        "--log-format", choices=("text", "json"), help=f"format of the log on stderr (default: {defaults.log_format})"
    )
    group.add_argument(
        "--log-level",
        choices=get_args(LogLevel),
        help=f"the least important lines of the log to write (default: {defaults.log_level})",
    )
    group.add_argument(
        "--otlp-endpoint",
        type=collector_url,
        metavar="URL",
        help="send a trace of each request to this OpenTelemetry collector, such as http://127.0.0.1:4318 "
        "(default: $OTEL_EXPORTER_OTLP_ENDPOINT, or none)",
    )


def add_limits(group: ArgumentGroup, defaults: Settings) -> None:
    """Add the limits on requests and connections."""
    _add_request_limits(group, defaults)
    _add_timeouts(group, defaults)


def _add_request_limits(group: ArgumentGroup, defaults: Settings) -> None:
    group.add_argument(
        "--strict",
        action=Flag,
        help="refuse requests with unknown fields (default: ignore the fields, and name them in a response header)",
    )
    group.add_argument(
        "--usage-chunk",
        choices=("empty", "choice"),
        help="in OpenAI's streams, send the usage in a chunk without choices, or with the last choice for clients that "
        f"need one (default: {defaults.usage_chunk})",
    )
    group.add_argument(
        "--max-body",
        dest="max_body_bytes",
        type=size,
        metavar="BYTES",
        help=f"maximum size of a request body (default: {defaults.max_body_bytes // MIB}M)",
    )
    group.add_argument(
        "--image-group",
        type=image_count,
        metavar="N",
        help="work through the images of a chat completion in groups of this size (default: all at once)",
    )
    group.add_argument(
        "--max-connections",
        type=count,
        metavar="N",
        help="maximum open connections; a new one closes the one that is idle for longest "
        f"(default: {defaults.max_connections})",
    )
    group.add_argument(
        "--stored",
        dest="max_stored_responses",
        type=count,
        metavar="N",
        help=f"maximum stored responses of /v1/responses (default: {defaults.max_stored_responses})",
    )


def _add_timeouts(group: ArgumentGroup, defaults: Settings) -> None:
    group.add_argument(
        "--keep-alive",
        dest="keep_alive_s",
        type=positive_duration,
        metavar="TIME",
        help=f"send an event without content after this silence in a stream (default: {defaults.keep_alive_s:g})",
    )
    group.add_argument(
        "--client-timeout",
        dest="client_timeout_s",
        type=positive_duration,
        metavar="TIME",
        help="close the connection of a client that stops sending or reading for this time "
        f"(default: {defaults.client_timeout_s:g})",
    )
    group.add_argument(
        "--body-timeout",
        dest="body_timeout_s",
        type=positive_duration,
        metavar="TIME",
        help=f"time for a whole request body to arrive (default: {defaults.body_timeout_s:g})",
    )
    group.add_argument(
        "--drain",
        dest="drain_s",
        type=duration,
        metavar="TIME",
        help=f"time for running requests to finish when the server stops (default: {defaults.drain_s:g})",
    )
    group.add_argument(
        "--stop-at-eof",
        action=Flag,
        help="stop when stdin ends, so that the server ends with the program that started it",
    )
