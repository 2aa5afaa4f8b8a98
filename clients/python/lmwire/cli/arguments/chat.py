"""Arguments of `lmwire chat`. An option that goes to the worker has the worker's name for it as its `dest`."""

import argparse
import shlex
from pathlib import Path
from textwrap import dedent
from typing import Final

from lmwire_protocol.command_line import Flag

from .parser import ArgumentGroup, Subcommands, image_file, json_file, run_later

BUILT_IN: Final = "builtin:tiny"
"""Default model: it needs no network."""


def add_chat(subcommands: Subcommands) -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser(
        "chat",
        help="chat with a model, or get one answer in a pipeline",
        description=dedent("""\
            Chat with a model. On a terminal it is a conversation: Ctrl-C stops an answer, Ctrl-D quits, /help lists
            the commands. With -p, or with a pipe on stdin, it gives one answer. stdin is then the prompt, or follows
            the prompt of -p. When stdout is a pipe, it gets the answer's plain text and nothing else."""),
        epilog=dedent("""\
            examples:
              lmwire chat ./my-model
              lmwire chat mlx-community/Qwen3-0.6B-4bit --system "Answer in French." --temperature 0.7
              lmwire chat MODEL -p "Write a haiku about pipes" > haiku.txt
              lmwire chat MODEL -p "Summarise this:" < notes.md
              lmwire chat MODEL -p "Who wrote it, and when?" --schema book.json < notes.md
              lmwire chat MODEL -p "What is on it?" --image photo.jpg
              lmwire chat MODEL --worker "ssh studio lmwire worker"
            """),
    )
    model = parser.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        default=BUILT_IN,
        help=f"a folder, a hub id (owner/name) or an alias (default: $LMWIRE_MODEL, or {BUILT_IN})",
    )
    parser.shared_variables[model] = "LMWIRE_MODEL"
    _add_load_options(parser.add_argument_group("loading"))
    _add_conversation_options(parser.add_argument_group("conversation"))
    _add_generation_options(parser.add_argument_group("generation"))
    _add_sampling_options(parser.add_argument_group("sampling"))
    parser.set_defaults(run=run_later("chat"))


def _add_load_options(group: ArgumentGroup) -> None:
    group.add_argument(
        "--worker",
        type=shlex.split,
        metavar="COMMAND",
        help="the command that runs the worker (default: one on this machine)",
    )
    group.add_argument("--adapter", dest="adapter_path", metavar="FOLDER", help="a LoRA adapter of the model")
    group.add_argument(
        "--draft",
        dest="draft_path",
        metavar="MODEL",
        help="a smaller model with the same tokens, for speculative decoding; or builtin:ngram, for texts that repeat",
    )
    group.add_argument("--context-len", type=int, metavar="N", help="context length, in tokens (default: the model's)")
    group.add_argument("--kv-bits", type=int, choices=(4, 8), help="quantize the KV cache to this number of bits")
    group.add_argument(
        "--dtype",
        choices=("float32", "bfloat16", "float16"),
        help="convert numbers that are not quantized to this type (default: as in the files, but float32 for float16 "
        "on a CPU, which is very slow there)",
    )
    group.add_argument("--force", action=Flag, default=None, help="load a model that does not seem to fit into memory")
    group.add_argument(
        "--generation-config",
        type=_uses_model_defaults,
        metavar="{model,none}",
        help="take sampling defaults from the model's generation_config.json, or from nowhere (default: none)",
    )


def _uses_model_defaults(text: str) -> bool:
    if text not in ("model", "none"):
        raise argparse.ArgumentTypeError(f"must be model or none, not {text!r}")
    return text == "model"


def _add_conversation_options(group: ArgumentGroup) -> None:
    group.add_argument("-p", "--prompt", help="answer this prompt and exit")
    group.add_argument(
        "--image",
        type=image_file,
        action="append",
        default=[],
        metavar="FILE",
        help="send this image with the first prompt; repeatable",
    )
    group.add_argument(
        "--resume",
        metavar="NAME",
        help="go on with a conversation that /save has saved, or with the last one, whose name is last",
    )
    group.add_argument("--system", metavar="TEXT", help="the system message")
    group.add_argument(
        "--tools",
        type=json_file,
        metavar="FILE",
        help="a JSON list of functions to call; you are asked for their results",
    )
    group.add_argument(
        "--mcp-config",
        type=Path,
        metavar="FILE",
        help="let the model call the tools of the MCP servers in this JSON file; you are asked before each call",
    )
    group.add_argument(
        "--allow-tool",
        action="append",
        default=[],
        metavar="NAME",
        help="do not ask for calls of this tool, SERVER__TOOL, or of this server's tools; repeatable. In a pipeline, "
        "all other calls are refused",
    )
    group.add_argument(
        "--truncate", choices=("left", "middle"), help="where to shorten a conversation that is too long"
    )


def _add_generation_options(group: ArgumentGroup) -> None:
    group.add_argument(
        "--max-tokens", type=int, metavar="N", help="longest answer, in tokens (default: until the context is full)"
    )
    group.add_argument("--stop", action="append", metavar="TEXT", help="end the answer before this text; repeatable")
    group.add_argument("--schema", type=json_file, metavar="FILE", help="answer with JSON of this JSON Schema")
    group.add_argument(
        "--reasoning", choices=("auto", "on", "off"), help="reason before answering (default: auto, as the model does)"
    )
    group.add_argument("--reasoning-effort", metavar="EFFORT", help="how much to reason: minimal to max")
    group.add_argument("--reasoning-budget", type=int, metavar="N", help="longest reasoning, in tokens")


def _add_sampling_options(group: ArgumentGroup) -> None:
    group.add_argument(
        "--temperature", type=float, metavar="T", help="0 always takes the most likely token (default: 0)"
    )
    group.add_argument("--top-p", type=float, metavar="P", help="sample from the likeliest tokens that add up to P")
    group.add_argument("--top-k", type=int, metavar="K", help="sample from the K likeliest tokens")
    group.add_argument("--min-p", type=float, metavar="P", help="drop tokens below this share of the likeliest one's")
    group.add_argument("--xtc-probability", type=float, metavar="P", help="how often to drop the likeliest tokens")
    group.add_argument(
        "--xtc-threshold", type=float, metavar="P", help="the likeliest are those above this (default: 0.1)"
    )
    group.add_argument("--repetition-penalty", type=float, metavar="R", help="above 1: repeat less (default: 1, off)")
    group.add_argument("--presence-penalty", type=float, metavar="R", help="above 0: say new things (default: 0, off)")
    group.add_argument(
        "--frequency-penalty", type=float, metavar="R", help="above 0: the same, for each repetition (default: 0, off)"
    )
    group.add_argument("--seed", type=int, metavar="N", help="the same seed gives the same answer")
