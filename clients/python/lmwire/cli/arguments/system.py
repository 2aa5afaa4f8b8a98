"""Arguments of `lmwire ps` and `lmwire doctor`, which look at this machine."""

from lmwire_protocol.command_line import Flag

from .parser import Subcommands, run_later


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
        description="Check Python, the packages, the device, the memory, the disk, the hub and the settings. Each "
        "finding is ok, warn or fail, with the way to mend it. The exit code is 1 if one is fail.",
    )
    parser.add_argument("--offline", action=Flag, help="do not ask the hub whether it can be reached")
    parser.add_argument("--json", action=Flag, help="print JSON instead of text")
    parser.set_defaults(run=run_later("doctor"))
