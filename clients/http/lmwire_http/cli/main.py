"""The `lmwire serve` command: from arguments to settings, and from errors to exit codes."""

import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from lmwire.cli.progress import make_progress_area
from lmwire.mcp import InvalidMcpConfig, read_mcp_config
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
    *("adapter_path", "draft_path", "context_len", "kv_bits", "dtype", "chat_template_name", "tool_format"),
    *("trust_remote_code", "reasoning_start", "reasoning_end"),
)

_ONE_MODEL_OPTIONS: Final = {
    "--adapter": "adapter_path",
    "--draft": "draft_path",
    "--chat-template": "chat_template_name",
    "--tool-format": "tool_format",
}


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
    key_file, mcp_file = given.pop("api_key_file"), given.pop("mcp_config")
    try:
        given["api_keys"] = read_api_keys(given.pop("api_key"), key_file, environment)
    except InvalidApiKeys as error:
        parser.error(str(error))
    try:
        given["mcp_servers"] = read_mcp_config(mcp_file, environment) if mcp_file else None
    except InvalidMcpConfig as error:
        parser.error(f"--mcp-config: {error}")
    if problem := _find_contradiction(given):
        parser.error(problem)
    if given["only"] is None:
        given["only"] = not given["preload"] or _find_option_of_named_models(given) is not None
    given["warnings"] = [*warnings, *_find_warnings(given, key_file, mcp_file)]
    given["worker_args"] = _pop_worker_args(given)
    given["generation_config"] = given["generation_config"] == "model"
    given["load_options"] = {name: value for name in _LOAD_OPTIONS if (value := given.pop(name)) is not None}
    return Settings(**{name: _frozen(value) for name, value in given.items() if value is not None})


def _frozen(value: object) -> Any:
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def _find_contradiction(given: Mapping[str, Any]) -> str | None:
    if given["preload"] and not given["models"]:
        return "--preload: name the models to load, as in lmwire serve MODEL --preload"
    for option, name in _ONE_MODEL_OPTIONS.items():
        if given[name] and len(given["models"]) != 1:
            return f"{option}: it belongs to one model: name that one, and no other"
    if given["template_dir"] and not given["chat_template_name"]:
        return "--template-dir: name the template to use with --chat-template"
    if given["trust_remote_code"] and not given["models"]:
        return "--trust-remote-code: name the models whose code may run: requests must not choose them"
    if given["only"] is False and (option := _find_option_of_named_models(given)):
        return f"--no-only: {option} holds for the named models alone: leave one of them out"
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
    if (
        given["mcp_servers"]
        and not given["api_keys"]
        and (given["public"] or ANY_ORIGIN in (given["cors_origins"] or ()))
    ):
        return "--mcp-config: with --public or --cors '*' everyone could call the tools: require a key (--api-key-file)"
    if given["otlp_endpoint"] and not can_trace():
        return f"--otlp-endpoint: {not_installed('opentelemetry-sdk', 'tracing')}"
    return None


def _find_option_of_named_models(given: Mapping[str, Any]) -> str | None:
    """Return an option that must not hold for models that requests choose, or whose worker lists none."""
    options = {**_ONE_MODEL_OPTIONS, "--trust-remote-code": "trust_remote_code", "--any-model-name": "any_model_name"}
    return next((option for option, name in {**options, "--worker": "worker_command"}.items() if given[name]), None)


def _find_warnings(given: Mapping[str, Any], key_file: Path | None, mcp_file: Path | None) -> list[str]:
    files = {"--api-key-file": key_file, "--mcp-config": mcp_file}
    warnings = [exposure_warning(option, file) for option, file in files.items() if file]
    if given["mcp_servers"] and not given["api_keys"] and not given["unix_socket"]:
        warnings.append(
            "--mcp-config without an API key: other users of this machine can call the tools, too; require a key with "
            "--api-key-file"
        )
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
