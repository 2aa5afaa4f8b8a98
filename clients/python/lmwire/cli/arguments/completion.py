"""Arguments of `lmwire completion`."""

from textwrap import dedent
from typing import Final

from .parser import Subcommands, run_later

SHELLS: Final = ("bash", "zsh", "fish")


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
