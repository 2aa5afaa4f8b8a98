"""The argument parser of `lmwire serve`: options for the models, for answers, and for the server."""

import argparse
from pathlib import Path
from typing import Any, Final, get_args

from lmwire.cli.option_sources import Flag, SourcedParser

from ..settings import MIB, LogLevel, ReasoningField, Settings
from .arg_types import (
    ArgumentGroup,
    collector_url,
    command,
    count,
    duration,
    host_name,
    image_count,
    memory_limit,
    model,
    origin,
    port,
    positive_duration,
    size,
)

_DESCRIPTION: Final = """\
Serve models over HTTP with the APIs of OpenAI, Anthropic and Ollama. Point a client at http://127.0.0.1:8080/v1, with
any API key. Each model runs in a process of its own, which starts at the model's first request. Ctrl-C or SIGTERM stops
the server after the running requests; a second one stops it at once.
Besides the APIs, the server has /health, /ready, /metrics (Prometheus), /openapi.json and /docs.
Environment variables with the prefix LMWIRE_SERVE set options, too: LMWIRE_SERVE_MAX_QUEUE sets --max-queue. So does
the table [serve] of the config file: see lmwire config."""
_EXAMPLES: Final = """\
examples:
  lmwire serve                                          any model on this machine
  lmwire serve mlx-community/Qwen3-0.6B-4bit            one model
  lmwire serve mlx-community/Qwen3-0.6B-4bit --preload  any model on this machine, this one loaded at once
  lmwire serve ./chat ./embed --memory 24G --idle 10m   two models, unloaded when idle
  lmwire serve MODEL --host 0.0.0.0 --api-key-file keys.txt
  lmwire serve MODEL --uds /run/lmwire.sock
  curl http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' \\
    -d '{"model": "MODEL", "messages": [{"role": "user", "content": "Who are you?"}]}'
"""


def _add_models(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the models and how they are loaded."""
    parser.add_argument(
        "models",
        nargs="*",
        type=model,
        metavar="MODEL",
        help="a folder, a hub id (owner/name) or an alias (default: any model on this machine)",
    )
    parser.add_argument("--preload", action=Flag, help="load the models when the server starts")
    parser.add_argument(
        "--only",
        action=Flag,
        default=None,
        help="serve no other models than the named ones (default: off with --preload, which loads them and serves the "
        "others on this machine, too; on without it, and with options for one model)",
    )
    parser.add_argument("--download", action=Flag, help="download models that are not on this machine")
    parser.add_argument(
        "--any-model-name",
        action=Flag,
        help="serve the one MODEL under any name that a request has, such as gpt-4o",
    )
    parser.add_argument(
        "--allow-paths",
        action=Flag,
        help="let requests name any folder on this machine as their model (default: only those that /v1/models lists)",
    )
    parser.add_argument("--adapter", dest="adapter_path", metavar="FOLDER", help="a LoRA adapter for the model")
    parser.add_argument(
        "--draft",
        dest="draft_path",
        metavar="MODEL",
        help="a smaller model with the same tokens, for speculative decoding; or builtin:ngram, for texts that repeat",
    )
    parser.add_argument(
        "--chat-template",
        dest="chat_template_name",
        metavar="NAME",
        help="the chat template to use: one of the model's, or NAME.jinja in --template-dir",
    )
    parser.add_argument(
        "--tool-format",
        metavar="NAME",
        help="the format in which the model writes tool calls; lmwire models --tool-formats lists them",
    )
    parser.add_argument(
        "--trust-remote-code",
        action=Flag,
        default=None,
        help="run the Python code that the named models bring; it may do what this user may do",
    )
    parser.add_argument("--context-len", type=count, metavar="N", help="context length in tokens, answer included")
    parser.add_argument("--kv-bits", type=int, choices=(4, 8), help="quantize the KV cache to this number of bits")
    parser.add_argument(
        "--dtype",
        choices=("float32", "bfloat16", "float16"),
        help="convert numbers that are not quantized to this type (default: as in the files, but float32 for float16 "
        "on a CPU, which is very slow there)",
    )
    parser.add_argument(
        "--generation-config",
        choices=("model", "none"),
        default="model",
        help="sampling defaults: those of the model's generation_config.json, or none (default: model)",
    )


def _add_memory(group: ArgumentGroup, defaults: Settings) -> None:
    """Add the limits on models in memory."""
    group.add_argument(
        "--memory",
        dest="memory_bytes",
        type=memory_limit,
        metavar="BYTES",
        help="memory for all models together, such as 24G; the least recently used model is unloaded for a new one. "
        "`none` sets no limit (default: nine tenths of the device's memory; none with --worker)",
    )
    group.add_argument(
        "--memory-wait",
        dest="memory_wait_s",
        type=duration,
        metavar="TIME",
        help=f"how long a model waits for memory that models in use hold (default: {defaults.memory_wait_s:g})",
    )
    group.add_argument(
        "--idle",
        dest="idle_s",
        type=positive_duration,
        metavar="TIME",
        help="unload a model after this time without a request",
    )
    group.add_argument(
        "--max-queue",
        dest="max_requests",
        type=count,
        metavar="N",
        help=f"maximum requests for one model at once; further ones receive 429 (default: {defaults.max_requests})",
    )
    group.add_argument(
        "--step-limit",
        dest="step_limit_s",
        type=duration,
        metavar="TIME",
        help="replace a worker that makes no progress on its requests for this time; 0 is never "
        f"(default: {defaults.step_limit_s:g})",
    )


def _add_workers(group: ArgumentGroup) -> None:
    """Add the options that are passed to the workers."""
    group.add_argument("--replicas", type=count, metavar="N", help="workers for each model (default: 1)")
    group.add_argument(
        "--worker",
        dest="worker_command",
        type=command,
        metavar="COMMAND",
        help='the command that starts a worker, such as "ssh -T studio lmwire worker" (default: one on this machine)',
    )
    group.add_argument("--cache-dir", metavar="DIR", help="store the prefix cache in this folder, too")
    group.add_argument(
        "--cache-disk",
        dest="cache_disk_bytes",
        type=size,
        metavar="BYTES",
        help="size of the cache in that folder (default: 16G)",
    )
    group.add_argument("--template-dir", metavar="DIR", help="a folder of chat templates for --chat-template")
    group.add_argument(
        "--request-templates",
        action=Flag,
        help="let requests send chat templates, which are programs (`chat_template`)",
    )
    group.add_argument(
        "--media-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="let requests name image and audio files in this folder; repeat for more",
    )
    group.add_argument("--media-urls", action=Flag, help="let requests name URLs of images and audio on public hosts")


def _add_answers(group: ArgumentGroup) -> None:
    """Add the defaults for requests."""
    group.add_argument(
        "--max-tokens",
        dest="default_max_tokens",
        type=count,
        metavar="N",
        help="maximum length of an answer, in tokens, if the request sets none (default: the rest of the context; "
        "16 for /v1/completions)",
    )
    group.add_argument(
        "--truncate-inputs",
        action=Flag,
        help="cut off the ends of texts for /v1/embeddings that are longer than the model takes (default: refuse them)",
    )
    group.add_argument(
        "--strict-tools",
        action=Flag,
        help="make the arguments of tool calls follow their schema, unless a tool has `strict`: false",
    )
    group.add_argument(
        "--reasoning",
        choices=("on", "off"),
        help="whether models reason if the request does not say (default: as the model does)",
    )
    group.add_argument(
        "--reasoning-field",
        choices=get_args(ReasoningField),
        help=f"name of the reasoning in chat completions (default: {Settings.reasoning_field})",
    )
    group.add_argument(
        "--force-reasoning",
        action=Flag,
        help="apply --reasoning to all requests, whatever they say",
    )
    group.add_argument(
        "--reasoning-start",
        metavar="TEXT",
        help="the text that starts the model's reasoning (default: found in its tokenizer)",
    )
    group.add_argument("--reasoning-end", metavar="TEXT", help="the text that ends it")


def _add_access(group: ArgumentGroup, defaults: Settings) -> None:
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
    group.add_argument(
        "--mcp-config",
        type=Path,
        metavar="FILE",
        help="let the chat page and other clients call the tools of the MCP servers in this file, a JSON object with "
        "`mcpServers` as other programs have it; its programs are started",
    )
    group.add_argument(
        "--mcp-timeout",
        dest="mcp_timeout_s",
        type=positive_duration,
        metavar="TIME",
        help=f"longest time of a call of a tool (default: {defaults.mcp_timeout_s:g})",
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


class Parser(SourcedParser):
    """A parser whose defaults are those of `Settings`."""

    def default_of(self, action: argparse.Action) -> Any:
        """Return the value of an option that no source sets."""
        return action.default or getattr(Settings(), action.dest, action.default)


def make_parser() -> Parser:
    """Return the parser. An option that is not given is None, so that `Settings` has all defaults."""
    parser = Parser(prog="lmwire serve", description=_DESCRIPTION, epilog=_EXAMPLES)
    defaults = Settings()
    parser.add_argument(
        "--env-file", type=Path, metavar="FILE", help="read environment variables from this file, such as .env"
    )
    _add_models(parser)
    _add_access(parser.add_argument_group("address and access"), defaults)
    _add_memory(parser.add_argument_group("models in memory"), defaults)
    limits = parser.add_argument_group("requests and connections")
    _add_request_limits(limits, defaults)
    _add_timeouts(limits, defaults)
    _add_answers(parser.add_argument_group("answers"))
    _add_workers(parser.add_argument_group("workers"))
    return parser
