"""The commands and the file of a service manager."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

Command: TypeAlias = list[str]


class ServiceManager(NamedTuple):
    """A program that runs services of a user."""

    name: str
    path: Callable[[], Path]
    """Returns the path of the service's file."""
    content: Callable[[Sequence[str]], bytes]
    """Returns the file for a command line."""
    start: Callable[[Path], list[Command]]
    """Returns the commands that start the service, replacing one that runs."""
    stop: Callable[[Path], list[Command]]
    """Returns the commands that stop it for good."""
    reload: list[Command]
    """Commands to run after the file has been removed."""
    status: Command
    after_install: str
    """Text for the user: the place of the log, and limits."""
