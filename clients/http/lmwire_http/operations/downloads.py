"""The paths at /v1/models/download: a client downloads a model of the hub, where the operator allows that."""

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct

from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Json, Reply, endpoint
from ..pool.downloads import Download, DownloadSize
from ..pool.model_resolver import DOWNLOADABLE, model_not_found

_PATH: Final = "/v1/models/download"


class DownloadRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A model to download."""

    model: str
    """A hub id or an alias."""
    max_bytes: Annotated[int, Meta(ge=0)] | None = None
    """Most bytes to fetch, such as the size that the user has seen; any if null."""


class SizeRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A model whose size is asked for."""

    model: str
    """A hub id or an alias."""


class DownloadStatus(Struct, kw_only=True):
    """Permission to download models, and the download that runs, or the last one."""

    allowed: bool
    """True if the operator allows downloads."""
    download: Download | None


@endpoint("GET", _PATH, response_type=DownloadStatus)
async def get_download(context: RequestContext, _: None) -> Reply:
    """Report how far the download of a model has come."""
    return _reply(context)


@endpoint("POST", f"{_PATH}/size", response_type=DownloadSize, error_statuses=(403,))
async def get_download_size(context: RequestContext, body: SizeRequest) -> Reply:
    """Ask the hub for the size of a model, and whether the disk has space for it."""
    return Json(await context.state.pool.downloads.size(_checked(body.model)))


@endpoint("POST", _PATH, response_type=DownloadStatus, error_statuses=(403, 409))
async def start_download(context: RequestContext, body: DownloadRequest) -> Reply:
    """Download a model of the hub. It goes on when the client disconnects."""
    context.state.pool.downloads.start(_checked(body.model), body.max_bytes)
    return _reply(context)


@endpoint("DELETE", _PATH, response_type=DownloadStatus)
async def cancel_download(context: RequestContext, _: None) -> Reply:
    """Cancel the download. What has arrived stays, and the next download goes on from there."""
    await context.state.pool.downloads.cancel()
    return _reply(context)


def _reply(context: RequestContext) -> Reply:
    downloads = context.state.pool.downloads
    return Json(DownloadStatus(allowed=downloads.are_allowed, download=downloads.last))


def _checked(name: str) -> str:
    """Return a name that may be one of the hub's: it becomes a word of a command line."""
    if DOWNLOADABLE.fullmatch(name):
        return name
    raise model_not_found(f"{name[:200]!r} is not a model of the hub; give owner/name, or an alias")


DOWNLOADS: Final[Sequence[Endpoint]] = (get_download, start_download, cancel_download, get_download_size)
