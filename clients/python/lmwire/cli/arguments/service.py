"""Arguments of `lmwire service`."""

from textwrap import dedent

from lmwire_protocol.command_line import Flag

from .parser import Subcommands, run_later


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
