"""Arguments of `lmwire pull`, which downloads a model, and of `lmwire rm`, which removes one."""

from lmwire_protocol.command_line import Flag

from .parser import Subcommands, run_later


def add_pull(subcommands: Subcommands) -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser(
        "pull",
        help="download a model of the hub",
        description="Download a model of the hub, or what has changed of it. An interrupted download goes on where it "
        "ended. The size and the free space are shown first. stdout gets the folder of the model.",
        epilog="examples:\n  lmwire pull qwen3-0.6b\n  lmwire pull mlx-community/Qwen3-4B-4bit --revision main",
    )
    parser.add_argument("model", metavar="MODEL", help="a hub id (owner/name) or an alias")
    parser.add_argument("--revision", metavar="NAME", help="a branch, tag or commit (default: the main branch)")
    parser.set_defaults(run=run_later("pull"))


def add_rm(subcommands: Subcommands) -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser(
        "rm",
        help="remove a downloaded model",
        description="Remove a model, with all of its revisions, from the cache of the hub. On a terminal it "
        "asks first. A model that a running worker has loaded stays.",
    )
    parser.add_argument("model", metavar="MODEL", help="a hub id (owner/name) or an alias, as in lmwire models")
    parser.add_argument("--yes", action=Flag, help="remove it without a question")
    parser.set_defaults(run=run_later("rm"))
