"""Arguments of `lmwire launch`."""

from textwrap import dedent
from typing import Final

from .parser import Subcommands, run_later

AGENTS: Final = ("claude", "codex", "opencode", "aider")
DEFAULT_URL: Final = "http://127.0.0.1:8080"
"""Address of a server that `lmwire serve` starts without options."""


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
