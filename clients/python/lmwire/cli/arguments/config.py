"""Arguments of `lmwire config`."""

from textwrap import dedent

from lmwire_protocol.command_line import Flag

from .parser import Subcommands, run_later


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
