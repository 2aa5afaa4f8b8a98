"""The `lmwire serve` command: from arguments to settings, and from errors to exit codes."""

import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from lmwire.cli.progress import make_progress_area
from lmwire_protocol.extras import not_installed

from ..http.api_keys import InvalidApiKeys, exposure_warning, read_api_keys
from ..server.server import serve
from ..server.sockets import CannotListen
from ..settings import ANY_ORIGIN, Settings
from ..telemetry.traces import can_trace
from .environment import parse_arguments, remove_keys_from_environment
from .parser import make_parser

_INTERRUPTED: Final = 130
"""Exit code of a program that SIGINT has ended, as shells report it."""
_LOAD_OPTIONS: Final = (
    *("adapter_path", "draft_path", "context_len", "kv_bits", "chat_template_name", "tool_format"),
    *("trust_remote_code", "reasoning_start", "reasoning_end"),
)


def main(argv: Sequence[str]) -> int:
    """Serve until a signal stops the server, and return the exit code."""
    settings = parse(argv, os.environ)
    remove_keys_from_environment()
    try:
        return serve(settings, make_progress_area)
    except CannotListen as error:
        print(f"lmwire: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return _INTERRUPTED


def parse(argv: Sequence[str], environment: MutableMapping[str, str]) -> Settings:
    """Return the settings of a command line. Exit with a sentence on stderr if it is wrong.

    Args:
        argv: The arguments after `lmwire serve`.
        environment: The environment variables. Those of `--env-file` are added unless they exist.
    """
    parser = make_parser()
    given, warnings = parse_arguments(parser, argv, environment)
    key_file = given.pop("api_key_file")
    try:
        given["api_keys"] = read_api_keys(given.pop("api_key"), key_file, environment)
    except InvalidApiKeys as error:
        parser.error(str(error))
    if problem := _find_contradiction(given):
        parser.error(problem)
    given["warnings"] = [*warnings, *_find_warnings(given, key_file)]
    given["worker_args"] = _pop_worker_args(given)
    given["generation_config"] = given["generation_config"] == "model"
    given["load_options"] = {name: value for name in _LOAD_OPTIONS if (value := given.pop(name)) is not None}
    return Settings(**{name: _frozen(value) for name, value in given.items() if value is not None})


def _frozen(value: object) -> Any:
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def _find_contradiction(given: Mapping[str, Any]) -> str | None:
    if given["preload"] and not given["models"]:
        return "--preload: name the models to load, as in lmwire serve MODEL --preload"
    for option, name in (
        ("--adapter", "adapter_path"),
        ("--draft", "draft_path"),
        ("--chat-template", "chat_template_name"),
        ("--tool-format", "tool_format"),
    ):
        if given[name] and len(given["models"]) != 1:
            return f"{option}: it belongs to one model: name that one, and no other"
    if given["template_dir"] and not given["chat_template_name"]:
        return "--template-dir: name the template to use with --chat-template"
    if given["trust_remote_code"] and not given["models"]:
        return "--trust-remote-code: name the models whose code may run: requests must not choose them"
    if given["any_model_name"] and len(given["models"]) != 1:
        return "--any-model-name: any name stands for one model: name that one, and no other"
    if given["force_reasoning"] and given["reasoning"] is None:
        return "--force-reasoning: say what to force, with --reasoning on or --reasoning off"
    if (given["reasoning_start"] is None) != (given["reasoning_end"] is None):
        return "--reasoning-start: it goes with --reasoning-end: give both, or neither"
    if given["allow_paths"] and given["models"]:
        return "--allow-paths: only the models that are named are served: leave them out, or this"
    if given["unix_socket"] and (given["host"] or given["port"] is not None):
        return "--uds: it replaces --host and --port: leave those out"
    if given["otlp_endpoint"] and not can_trace():
        return f"--otlp-endpoint: {not_installed('opentelemetry-sdk', 'tracing')}"
    return None


def _find_warnings(given: Mapping[str, Any], key_file: Path | None) -> list[str]:
    warnings = [] if key_file is None else [exposure_warning("--api-key-file", key_file)]
    if ANY_ORIGIN in (given["cors_origins"] or ()) and not given["api_keys"]:
        warnings.append(
            "--cors '*' without an API key: every web page in a browser on this machine can send any request"
        )
    return [warning for warning in warnings if warning]


def _pop_worker_args(given: dict[str, Any]) -> tuple[str, ...]:
    """Remove the options that belong to the worker, and return them as arguments of its command line."""
    args: list[str] = []
    for name in ("cache_dir", "cache_disk_bytes", "template_dir"):
        if (value := given.pop(name)) is not None:
            args += [f"--{name.replace('_', '-')}", str(value)]
    for folder in given.pop("media_dir"):
        args += ["--media-dir", folder]
    if given.pop("media_urls"):
        args.append("--media-urls")
    return tuple(args)
