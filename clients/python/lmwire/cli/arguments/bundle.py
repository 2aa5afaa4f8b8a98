"""Arguments of `lmwire bundle`."""

from pathlib import Path
from textwrap import dedent

from lmwire_protocol.command_line import Flag

from .parser import Subcommands, run_later


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
