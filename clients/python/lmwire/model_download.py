"""The program that downloads a model of the hub, and the lines that it writes to stdout."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from .child_process import child_environment, python_command

if TYPE_CHECKING:
    from asyncio.subprocess import Process


class DownloadLine(msgspec.Struct, tag_field="event"):
    """A line of the program."""


class PlanLine(DownloadLine, tag="plan"):
    """Plan of a download, before the first file."""

    hub_id: str
    files: int
    missing: int
    """Number of files that are not on this machine."""
    total_bytes: int | None
    """None if the hub does not report the size of a file."""
    missing_bytes: int | None
    partial_bytes: int
    """Size of what has arrived of the missing files."""
    cache: str
    free_bytes: int


class ProgressLine(DownloadLine, tag="progress"):
    """Progress of the download. Such lines come all the time: the program ends when nobody reads them."""

    stage: str
    current: int
    total: int | None
    unit: str


class DoneLine(DownloadLine, tag="done"):
    """The last line of a download that has succeeded."""

    folder: str


class ErrorLine(DownloadLine, tag="error"):
    """The last line of a download that has failed."""

    error: str


AnyLine: TypeAlias = PlanLine | ProgressLine | DoneLine | ErrorLine
decode_line: Final[Callable[[bytes], AnyLine]] = msgspec.json.Decoder(AnyLine).decode
"""Decode a line of the program."""


def download_command(model: str, revision: str | None = None, *, plan_only: bool = False) -> list[str]:
    """Return the command of the program. It ends soon after the last reader of its stdout.

    Args:
        model: A hub id or an alias.
        revision: A branch, tag or commit; None for the main branch.
        plan_only: Whether the program ends after the plan.
    """
    options = ["--plan"] if plan_only else []
    return python_command("lmwire_worker.models.hub.pull", *options, model, *([] if revision is None else [revision]))


async def start_download(model: str, *, plan_only: bool = False) -> "Process":
    """Start the program, whose lines are on its stdout, and return its process.

    Args:
        model: A hub id or an alias.
        plan_only: Whether the program ends after the plan.
    """
    from asyncio.subprocess import DEVNULL, PIPE, create_subprocess_exec  # the command has no use of it

    command = download_command(model, plan_only=plan_only)
    return await create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, env=child_environment())


__all__ = [
    "AnyLine",
    "DoneLine",
    "ErrorLine",
    "PlanLine",
    "ProgressLine",
    "decode_line",
    "download_command",
    "start_download",
]
