"""Plan a download: which files of a model are missing, their size, and whether the disk has room for them."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from huggingface_hub import HfApi, try_to_load_from_cache
from huggingface_hub.utils import filter_repo_objects

from lmwire_protocol import RequestError
from lmwire_protocol.command_line import format_size

from .cache import hub_cache, repository_of

PARTIAL_SUFFIX: Final = ".lmwire-partial"
"""End of the name of a file that has arrived in part. It differs from that of the hub's library, which removes its."""
WEIGHTS_SUFFIX: Final = ".safetensors"
RESERVE_BYTES: Final = 250_000_000
"""Free space that a download leaves on the disk, in bytes."""


_SPACE_REMEDY: Final = "; free some space (`lmwire rm` removes a model), or set HF_HOME to a folder on a larger disk"


@dataclass(frozen=True)
class RemoteFile:
    """A file of a model on the hub."""

    name: str
    size: int | None
    """Its size in bytes; None if the hub does not report it."""


@dataclass(frozen=True)
class DownloadPlan:
    """The files that a download fetches, and their place."""

    hub_id: str
    commit: str
    """The revision's commit, in hexadecimal digits."""
    files: tuple[RemoteFile, ...]
    """All files of the model."""
    missing: tuple[RemoteFile, ...]
    """The files that are not on this machine."""
    partial_bytes: int
    """Size of what has arrived of the missing files, in bytes."""
    cache: Path
    """The cache's folder, which may not exist yet."""
    free_bytes: int
    """Free space of the cache's disk, in bytes."""

    @property
    def total_bytes(self) -> int | None:
        """Size of all files, in bytes; None if a size is unknown."""
        return _sum(self.files)

    @property
    def missing_bytes(self) -> int | None:
        """Size of the missing files, in bytes; None if a size is unknown."""
        return _sum(self.missing)


Announce = Callable[[DownloadPlan], object]
"""Receives the plan before the download starts. What it raises prevents the download."""


def plan_download(hub_id: str, patterns: Sequence[str], revision: str | None = None) -> DownloadPlan:
    """Ask the hub for a model's files, and return the plan of their download.

    Args:
        hub_id: The model's name on the hub.
        patterns: Patterns of the names of the wanted files.
        revision: A branch, tag or commit; None for the main branch.
    """
    info = HfApi().model_info(hub_id, revision=revision, files_metadata=True)
    sizes = {file.rfilename: file.size for file in info.siblings or []}
    wanted = [RemoteFile(name, sizes[name]) for name in filter_repo_objects(sizes, allow_patterns=list(patterns))]
    missing = [
        file for file in wanted if not isinstance(try_to_load_from_cache(hub_id, file.name, revision=info.sha), str)
    ]
    cache = Path(hub_cache())
    return DownloadPlan(
        hub_id=hub_id,
        commit=str(info.sha),
        files=tuple(wanted),
        missing=tuple(missing),
        partial_bytes=_partial_bytes(repository_of(hub_id)),
        cache=cache,
        free_bytes=shutil.disk_usage(_nearest_folder(cache)).free,
    )


def check_plan(plan: DownloadPlan) -> None:
    """Check that the model has weights that MLX reads, and that its missing files fit on the disk.

    Raises:
        RequestError: bad_model, model_not_found.
    """
    if not any(file.name.endswith(WEIGHTS_SUFFIX) for file in plan.files):
        problem = f"{plan.hub_id} has no {WEIGHTS_SUFFIX} files, the weights that MLX reads"
        raise RequestError("bad_model", f"{problem}; look for a conversion of it, such as those of mlx-community")
    needed = (plan.missing_bytes or 0) - plan.partial_bytes
    if needed and needed + RESERVE_BYTES > plan.free_bytes:
        need = f"{format_size(needed)} more, beside a reserve of {format_size(RESERVE_BYTES)}"
        problem = f"{plan.hub_id} needs {need}, and {plan.cache} has {format_size(plan.free_bytes)}"
        raise RequestError("model_not_found", f"{problem} free{_SPACE_REMEDY}")


def check_space(plan: DownloadPlan) -> None:
    """Check that the disk still has its reserve: the hub may send more than it has announced, and others write too.

    Raises:
        RequestError: model_not_found.
    """
    if shutil.disk_usage(_nearest_folder(plan.cache)).free < RESERVE_BYTES:
        problem = f"the download of {plan.hub_id} has stopped: {plan.cache} has less than {format_size(RESERVE_BYTES)}"
        raise RequestError("model_not_found", f"{problem} free{_SPACE_REMEDY}")


def _sum(files: Sequence[RemoteFile]) -> int | None:
    sizes = [file.size for file in files if file.size is not None]
    return sum(sizes) if len(sizes) == len(files) else None


def _partial_bytes(repository: Path) -> int:
    return sum(file.stat().st_size for file in repository.glob(f"blobs/*{PARTIAL_SUFFIX}"))


def _nearest_folder(path: Path) -> Path:
    """Return the path, or the folder above it that exists."""
    return next(folder for folder in (path, *path.absolute().parents) if folder.exists())
