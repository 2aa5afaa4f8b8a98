"""Options of `lmwire serve` for the models and their workers."""

import argparse

from lmwire.cli.option_sources import Flag

from ..settings import Settings
from .arg_types import ArgumentGroup, command, count, duration, memory_limit, model, positive_duration, size


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the models and how they are loaded."""
    parser.add_argument(
        "models",
        nargs="*",
        type=model,
        metavar="MODEL",
        help="a folder, a hub id (owner/name) or an alias (default: any model on this machine)",
    )
    parser.add_argument("--preload", action=Flag, help="load the models when the server starts")
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
        help="a smaller model with the same vocabulary, for speculative decoding",
    )
    parser.add_argument(
        "--chat-template",
        dest="chat_template_name",
        metavar="NAME",
        help="the chat template to use: one of the model's, or NAME.jinja in --template-dir",
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
        "--generation-config",
        choices=("model", "none"),
        default="model",
        help="sampling defaults: those of the model's generation_config.json, or none (default: model)",
    )


def add_limits(group: ArgumentGroup, defaults: Settings) -> None:
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


def add_workers(group: ArgumentGroup) -> None:
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
