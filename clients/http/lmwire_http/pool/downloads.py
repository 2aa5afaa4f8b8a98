"""Downloads of models that clients ask for: one at a time, each in a process that ends with the server."""

import asyncio
import logging
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, Literal

from msgspec import MsgspecError, Struct

from lmwire.model_download import (
    AnyLine,
    DoneLine,
    ErrorLine,
    PlanLine,
    ProgressLine,
    decode_line,
    start_download,
)

from ..errors import ApiError
from ..settings import Settings
from .hidden_paths import hide_paths

_PLAN_S: Final = 60.0
"""Longest time in which the hub must describe a model, in seconds."""
_MOST_PLANS: Final = 2
"""Processes that ask the hub for a model's size at once."""
_log = logging.getLogger("lmwire_http")


class DownloadSize(Struct, kw_only=True, frozen=True):
    """Size of a download, before anything is fetched."""

    model: str
    """The model's name on the hub."""
    files: int
    total_bytes: int
    missing_bytes: int
    """Size of the files that are not on this machine."""
    arrived_bytes: int
    """Size of what has arrived of these files, of a download that was interrupted."""
    free_bytes: int
    """Free space on the disk."""


class Download(Struct, kw_only=True):
    """A download and how far it has come."""

    model: str
    state: Literal["running", "done", "cancelled", "failed"] = "running"
    current_bytes: int = 0
    total_bytes: int | None = None
    """None until the hub has described the model."""
    problem: str | None = None
    """Why it has failed, and what to do."""


class Downloads:
    """The download that runs, or the last one.

    Args:
        settings: The server's settings, which allow downloads or not.
        on_done: Called when a model has arrived.
    """

    def __init__(self, settings: Settings, on_done: Callable[[], object]) -> None:
        self.are_allowed = settings.download and settings.serves_others and not settings.worker_command
        """True if clients may download models. A server of named models would not serve them."""
        self.last: Download | None = None
        self._on_done = on_done
        self._plans = asyncio.Semaphore(_MOST_PLANS)
        self._task: asyncio.Task[None] | None = None

    async def size(self, model: str) -> DownloadSize:
        """Ask the hub for the size of a model's files.

        Args:
            model: A hub id or an alias.

        Raises:
            ApiError: Downloads are not allowed, the hub does not have the model, or the disk has no space for it.
        """
        self._check_allowed()
        try:
            async with self._plans, asyncio.timeout(_PLAN_S), _lines(model, plan_only=True) as lines:
                async for line in lines:
                    if isinstance(line, PlanLine):
                        return _size_of(line)
                    if isinstance(line, ErrorLine):
                        raise _refused(line.error)
        except TimeoutError:
            raise _refused(f"the hub has not described {model[:200]!r} in {_PLAN_S:.0f} s; try again") from None
        raise _refused(_ENDED)

    def start(self, model: str, max_bytes: int | None) -> Download:
        """Start a download, and return it.

        Args:
            model: A hub id or an alias.
            max_bytes: Most bytes to fetch: the size to which the user has agreed; None for any.

        Raises:
            ApiError: Downloads are not allowed, or another one runs.
        """
        self._check_allowed()
        if self._task and not self._task.done():
            problem = "another model is downloaded now; wait for its end, or cancel it"
            raise ApiError(409, problem, code="download_running")
        self.last = Download(model=model)
        self._task = asyncio.create_task(self._run(self.last, max_bytes))
        return self.last

    async def cancel(self) -> Download | None:
        """End the download that runs, and return the last one. What has arrived stays."""
        if self._task and self.last:
            self._task.cancel()
            await asyncio.wait([self._task])
            if self.last.state == "running":  # the task had not begun
                self.last.state = "cancelled"
        return self.last

    async def _run(self, download: Download, max_bytes: int | None) -> None:
        try:
            await self._follow(download, max_bytes)
        except asyncio.CancelledError:
            download.state = "cancelled"
        except ApiError as error:
            download.state, download.problem = "failed", error.message
        except OSError as error:
            download.state, download.problem = "failed", hide_paths(f"the download cannot be started: {error}")
        _log.info("the download of %s: %s%s", download.model, download.state, _reason(download))

    async def _follow(self, download: Download, max_bytes: int | None) -> None:
        _log.info("downloading %s, as a client has asked", download.model)
        async with _lines(download.model) as lines:
            async for line in lines:
                match line:
                    case PlanLine():
                        size = _size_of(line)
                        if max_bytes is not None and size.missing_bytes > max_bytes:
                            raise _refused("the model has become larger meanwhile; ask for its size again")
                        download.model, download.total_bytes = size.model, size.missing_bytes
                    case ProgressLine():
                        download.current_bytes = line.current
                    case ErrorLine():
                        raise _refused(line.error)
                    case DoneLine():
                        download.state, download.current_bytes = "done", download.total_bytes or 0
                        self._on_done()
                        return
        raise _refused(_ENDED)

    def _check_allowed(self) -> None:
        if not self.are_allowed:
            problem = "this server downloads no models; start it with --download, and without --only and --worker"
            raise ApiError(403, problem, code="downloads_not_allowed")


_ENDED: Final = "the program that downloads has ended unexpectedly; the server's log may have the reason"


@asynccontextmanager
async def _lines(model: str, *, plan_only: bool = False) -> AsyncGenerator[AsyncGenerator[AnyLine]]:
    """Run the program that downloads, and yield its lines. The program is killed at the end."""
    process = await start_download(model, plan_only=plan_only)
    try:
        yield _read(process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _read(process: Process) -> AsyncGenerator[AnyLine]:
    assert process.stdout
    with suppress(MsgspecError, ValueError):  # no line of the program, or one that is too long
        while line := await process.stdout.readline():
            yield decode_line(line)


def _size_of(plan: PlanLine) -> DownloadSize:
    if plan.total_bytes is None or plan.missing_bytes is None:
        raise _refused(f"the hub does not report the size of {plan.hub_id}; download it with `lmwire pull`")
    return DownloadSize(
        model=plan.hub_id,
        files=plan.files,
        total_bytes=plan.total_bytes,
        missing_bytes=plan.missing_bytes,
        arrived_bytes=plan.partial_bytes,
        free_bytes=plan.free_bytes,
    )


def _refused(problem: str) -> ApiError:
    _log.warning("a model is not downloaded: %s", problem)
    return ApiError(404, hide_paths(problem), code="model_not_found", param="model")


def _reason(download: Download) -> str:
    return f": {download.problem}" if download.problem else ""
