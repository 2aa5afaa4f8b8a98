"""The command line of `lmwire serve`: what can be typed, the help for it, and the settings that it makes."""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

from lmwire.command.arguments import Parser
from lmwire.command.failures import reported

from ..http.api_keys import VARIABLE, BadKeys, exposure, given_keys
from ..server.server import serve
from ..settings import ANY_ORIGIN, MIB, Settings
from .arg_types import command, count, duration, host_name, model, origin, port, positive_duration, size

_DEFAULT: Final = Settings()
_LOAD_OPTIONS: Final = ("adapter_path", "draft_path", "context_len", "kv_bits")


def main(argv: Sequence[str]) -> int:
    """Serves until it is told to end, and returns the exit code."""
    settings = parse(argv, os.environ)
    os.environ.pop(VARIABLE, None)  # workers inherit the rest
    return reported(serve, settings)


def parse(argv: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """What the command line says. Exits, with a sentence on stderr, when it says nothing that can be done."""
    parser = _parser()
    given = vars(parser.parse_args(argv))
    key_file = given.pop("api_key_file")
    try:
        given["api_keys"] = given_keys(given.pop("api_key"), key_file, environment)
    except BadKeys as error:
        parser.error(str(error))
    if problem := _contradiction(given):
        parser.error(problem)
    given["warnings"] = _warnings(given, key_file)
    given["worker"] = _worker_options(given)
    given["load"] = {name: value for name in _LOAD_OPTIONS if (value := given.pop(name)) is not None}
    # What was not given is left to the settings' own defaults.
    return Settings(**{name: _frozen(value) for name, value in given.items() if value is not None})


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _contradiction(given: Mapping[str, Any]) -> str | None:
    if given["preload"] and not given["models"]:
        return "--preload: name the models to load, as lmwire serve MODEL --preload"
    for option, name in (("--adapter", "adapter_path"), ("--draft", "draft_path")):
        if given[name] and len(given["models"]) != 1:
            return f"{option}: it belongs to one model: name that one, and no other"
    if given["allow_paths"] and given["models"]:
        return "--allow-paths: only the models that are named are served: leave them out, or this"
    if given["uds"] and (given["host"] or given["port"] is not None):
        return "--uds: it is instead of --host and --port: leave those out"
    return None


def _warnings(given: Mapping[str, Any], key_file: Path | None) -> list[str]:
    warnings = [] if key_file is None else [exposure(key_file)]
    if ANY_ORIGIN in (given["cors"] or ()) and not given["api_keys"]:
        warnings.append(
            "--cors '*' without an API key: every page that a browser on this machine shows can ask anything"
        )
    return [warning for warning in warnings if warning]


def _worker_options(given: dict[str, Any]) -> tuple[str, ...]:
    """What the worker itself is told, in the words of its own command line."""
    options: list[str] = []
    for name in ("cache_dir", "cache_disk_bytes"):
        if (value := given.pop(name)) is not None:
            options += [f"--{name.replace('_', '-')}", str(value)]
    for folder in given.pop("media_dir"):
        options += ["--media-dir", folder]
    if given.pop("media_urls"):
        options.append("--media-urls")
    return tuple(options)


def _parser() -> Parser:
    parser = Parser(
        prog="lmwire serve",
        description=dedent("""\
            Serve models over HTTP, in OpenAI's and Anthropic's shapes: point a tool at http://127.0.0.1:8080/v1, with
            any API key. A model is loaded when it is first asked for, by a process of its own. Ctrl-C, or SIGTERM, lets
            running requests end; a second one does not.
            Besides the APIs there are /health, /ready, /metrics (Prometheus) and /openapi.json."""),
        epilog=dedent("""\
            examples:
              lmwire serve                                          any model that is on this machine
              lmwire serve mlx-community/Qwen3-0.6B-4bit --preload  one, loaded at once
              lmwire serve ./chat ./embed --memory 24G --idle 10m   two; each leaves memory when it is not used
              lmwire serve MODEL --host 0.0.0.0 --api-key-file keys.txt
              lmwire serve MODEL --uds /run/lmwire.sock
              curl http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' \\
                -d '{"model": "MODEL", "messages": [{"role": "user", "content": "Who are you?"}]}'
            """),
    )
    _add_models(parser)
    _add_listening(parser.add_argument_group("where it listens, and to whom"))
    _add_limits(parser.add_argument_group("limits"))
    _add_worker(parser.add_argument_group("the workers"))
    return parser


def _add_models(parser: Parser) -> None:
    parser.add_argument(
        "models",
        nargs="*",
        type=model,
        metavar="MODEL",
        help="a folder, a hub id (owner/name) or an alias; any that is on this machine when left out",
    )
    parser.add_argument("--preload", action="store_true", help="load the models at once, not when they are asked for")
    parser.add_argument("--download", action="store_true", help="fetch models that are not on this machine")
    parser.add_argument(
        "--allow-paths",
        action="store_true",
        help="let requests name any folder of this machine as their model; without it, only what /v1/models lists",
    )
    parser.add_argument("--adapter", dest="adapter_path", metavar="FOLDER", help="a LoRA adapter of the model")
    parser.add_argument(
        "--draft", dest="draft_path", metavar="MODEL", help="a smaller model of the same tokens, to speed this one up"
    )
    parser.add_argument("--context-len", type=count, metavar="N", help="tokens of a prompt and its answer at most")
    parser.add_argument("--kv-bits", type=int, choices=(4, 8), help="keep keys and values in so many bits")


def _add_listening(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--host", help=f"the address to listen on (default: {_DEFAULT.host}, this machine alone)")
    group.add_argument("--port", type=port, help=f"(default: {_DEFAULT.port}; 0 is any that is free)")
    group.add_argument(
        "--host-name",
        dest="host_names",
        action="append",
        type=host_name,
        metavar="NAME",
        help="answer requests for this name too, as studio.local, where no API key is asked for; can be given again",
    )
    group.add_argument("--uds", metavar="PATH", help="listen on a Unix socket, which this user alone can open")
    group.add_argument(
        "--public", action="store_true", help="serve other machines without an API key, and whoever is on them"
    )
    group.add_argument(
        "--api-key",
        action="append",
        default=[],
        metavar="KEY",
        help="ask for this key; can be given again. Other users of this machine can see it here: better is "
        "$LMWIRE_API_KEY, or",
    )
    group.add_argument("--api-key-file", type=Path, metavar="FILE", help="ask for one of its lines")
    group.add_argument(
        "--cors",
        action="append",
        type=origin,
        metavar="ORIGIN",
        help="let pages of this origin ask, as http://localhost:3000, or of any with '*'; can be given again",
    )
    group.add_argument(
        "--log-format", choices=("text", "json"), help=f"of the lines on stderr (default: {_DEFAULT.log_format})"
    )


def _add_limits(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--memory",
        dest="memory_bytes",
        type=size,
        metavar="BYTES",
        help="for all models together, as 24G; the one not asked for longest makes room",
    )
    group.add_argument(
        "--memory-wait",
        dest="room_s",
        type=duration,
        metavar="TIME",
        help=f"of a model for memory that others are using (default: {_DEFAULT.room_s:g})",
    )
    group.add_argument(
        "--idle", dest="idle_s", type=positive_duration, metavar="TIME", help="unload what was not used for so long"
    )
    group.add_argument(
        "--max-queue",
        dest="queue",
        type=count,
        metavar="N",
        help=f"requests of one model at once; more are told to come again (default: {_DEFAULT.queue})",
    )
    group.add_argument(
        "--max-body",
        dest="body_bytes",
        type=size,
        metavar="BYTES",
        help=f"of one request (default: {_DEFAULT.body_bytes // MIB}M)",
    )
    group.add_argument(
        "--step-limit",
        dest="step_limit_s",
        type=duration,
        metavar="TIME",
        help="without progress, after which a worker that requests wait for is replaced; 0 is never "
        f"(default: {_DEFAULT.step_limit_s:g})",
    )
    group.add_argument(
        "--keep-alive",
        dest="keep_alive_s",
        type=positive_duration,
        metavar="TIME",
        help=f"of silence in a stream until a comment is sent (default: {_DEFAULT.keep_alive_s:g})",
    )
    group.add_argument(
        "--patience",
        dest="patience_s",
        type=positive_duration,
        metavar="TIME",
        help=f"for a client that stops in the middle, sending or reading (default: {_DEFAULT.patience_s:g})",
    )
    group.add_argument(
        "--body-timeout",
        dest="body_s",
        type=positive_duration,
        metavar="TIME",
        help=f"for the whole body of a request to arrive (default: {_DEFAULT.body_s:g})",
    )
    group.add_argument(
        "--max-connections",
        dest="connections",
        type=count,
        metavar="N",
        help=f"open at once; for a new one the longest idle one is closed (default: {_DEFAULT.connections})",
    )
    group.add_argument(
        "--drain",
        dest="drain_s",
        type=duration,
        metavar="TIME",
        help=f"for running requests when the server ends (default: {_DEFAULT.drain_s:g})",
    )
    group.add_argument(
        "--stored",
        type=count,
        metavar="N",
        help=f"responses that are kept to be continued, at most (default: {_DEFAULT.stored})",
    )


def _add_worker(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--replicas", type=count, metavar="N", help="of each model (default: 1)")
    group.add_argument(
        "--worker",
        dest="command",
        type=command,
        metavar="COMMAND",
        help='the command that runs one (default: one on this machine), as "ssh -T studio lmwire worker"',
    )
    group.add_argument("--cache-dir", metavar="DIR", help="keep what was computed of prompts here as well")
    group.add_argument(
        "--cache-disk",
        dest="cache_disk_bytes",
        type=size,
        metavar="BYTES",
        help="what that may take (default: 16G)",
    )
    group.add_argument(
        "--request-templates",
        action="store_true",
        help="let requests bring chat templates of their own, which are programs (`chat_template`)",
    )
    group.add_argument(
        "--media-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="let requests name image and sound files under it; can be given again",
    )
    group.add_argument(
        "--media-urls", action="store_true", help="let requests name addresses of images and sounds on public hosts"
    )
