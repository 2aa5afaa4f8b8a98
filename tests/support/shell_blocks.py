"""The commands of a page's shell blocks."""

import re
import shlex
from collections.abc import Iterator
from typing import Final, NamedTuple

from support.markdown import Block

SHELLS: Final = ("sh", "console", "zsh")
"""Languages of the blocks with commands. In `console`, a command begins with `$ ` and its output follows."""


class Command(NamedTuple):
    """A command of a block, without its comments, and the output that the block shows."""

    text: str
    output: str = ""


def commands_of(block: Block) -> list[Command]:
    """Return the commands of a block, each with its continuation lines."""
    return list(_read(block.text.splitlines(), shows_output=block.language == "console"))


def _read(lines: list[str], *, shows_output: bool) -> Iterator[Command]:
    rest = iter(lines)
    command, output = "", ""
    for line in rest:
        if shows_output and not line.startswith("$ "):
            output += f"{line}\n"
            continue
        if command:
            yield Command(command, output)
        command, output = line.removeprefix("$ ") if shows_output else line, ""
        while _goes_on(command):
            command += f"\n{next(rest)}"
        command = re.sub(r"(?:^|\s+)# .*", "", command)
    if command:
        yield Command(command, output)


def _goes_on(command: str) -> bool:
    """Return whether a command continues on the next line."""
    if command.endswith(("\\", "|")):
        return True
    try:
        shlex.split(command, comments=True)
    except ValueError:  # a quotation is open
        return True
    return False
