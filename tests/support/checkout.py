"""A checkout as git has it, without what a build or an installation made of it."""

import shutil
import subprocess
from pathlib import Path

from support.process.lmwire_command import REPOSITORY


def copy_checkout(to: Path, *paths: str) -> None:
    """Copy the repository's files, as they are now.

    Args:
        to: The folder to write.
        paths: The files and folders that are needed; all of the repository without one.
    """
    listed = subprocess.check_output(["git", "ls-files", "-z", *paths], cwd=REPOSITORY)
    for name in filter(None, listed.decode().split("\0")):
        if (REPOSITORY / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, to / name)
