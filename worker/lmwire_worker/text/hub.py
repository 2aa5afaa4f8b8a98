"""Models in the hub's cache: found there without a network call, fetched into it otherwise."""

import errno
import threading
from pathlib import Path
from typing import Any, Final

from huggingface_hub import HfApi, snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled
from huggingface_hub.utils import filter_repo_objects
from mlx_lm.utils import DEFAULT_ALLOW_PATTERNS
from tqdm.auto import tqdm

from lmwire_protocol import RequestError

from ..kinds import kind_of
from ..lane import Report

PATTERNS: Final = (*DEFAULT_ALLOW_PATTERNS, "weights*.safetensors")
"""The files of a model: those of mlx-lm, and what many speech models call their weights."""
POLL_S: Final = 0.05
"""How often a download looks at its progress, and at whether it was cancelled."""
DISK_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)


def find_snapshot(hub_id: str, report: Report) -> Path:
    """The folder of a model's snapshot. No network call when it is on disk and complete.

    Raises:
        RequestError: model_not_found; retryable when the network failed.
        LoadCancelled: from `report`. Files that have arrived stay, and are not fetched again.
    """
    try:
        folder = Path(snapshot_download(hub_id, allow_patterns=list(PATTERNS), local_files_only=True))
        kind_of(folder, trust_remote_code=True)  # an interrupted download of another program leaves a part of it
    except (LocalEntryNotFoundError, HFValidationError, RequestError):
        return _fetch(hub_id, report)
    return folder


def _fetch(hub_id: str, report: Report) -> Path:
    download = _Download(hub_id)
    try:
        while not download.ended.wait(POLL_S):
            report("download", download.done, download.total, "bytes")
    finally:
        download.cancelled.set()
        download.ended.wait(1)  # it notices at the next chunk; a server that stands still is not waited for
    if isinstance(download.result, Path):
        return download.result
    raise _explain(hub_id, download.result)


class _Download:
    """A download in a thread of its own, so that a server that stands still holds no cancel back."""

    def __init__(self, hub_id: str) -> None:
        self.done = 0
        self.total: int | None = None
        self.result: Path | Exception = RuntimeError("the download has not ended")
        self.ended = threading.Event()
        self.cancelled = threading.Event()
        threading.Thread(target=self._run, args=(hub_id,), name="download", daemon=True).start()

    def _run(self, hub_id: str) -> None:
        try:
            self.total = _missing_bytes(hub_id)
            bar = type("Bar", (_Bar,), {"download": self})
            self.result = Path(snapshot_download(hub_id, allow_patterns=list(PATTERNS), tqdm_class=bar))
        except Exception as error:
            self.result = error
        finally:
            self.ended.set()


def _missing_bytes(hub_id: str) -> int | None:
    info = HfApi().model_info(hub_id, files_metadata=True)
    sizes = {file.rfilename: file.size for file in info.siblings or []}
    names = filter_repo_objects(sizes, allow_patterns=list(PATTERNS))
    missing = [
        sizes[name] for name in names if not isinstance(try_to_load_from_cache(hub_id, name, revision=info.sha), str)
    ]
    return None if None in missing else sum(size or 0 for size in missing)


class _Bar(tqdm):
    """A progress bar that shows nothing: the hub library's way of telling how far it is."""

    download: _Download

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._counts_bytes = kwargs.get("unit") == "B"
        super().__init__(*args, **(kwargs | {"disable": True}))

    def update(self, n: float | None = 1) -> None:
        if self.download.cancelled.is_set():
            raise InterruptedError("the download was cancelled")
        self.n += n or 0
        if self._counts_bytes:  # there are several such bars, for bytes received and bytes written
            self.download.done = max(self.download.done, int(self.n))


def _explain(hub_id: str, error: Exception) -> RequestError:
    if isinstance(error, HFValidationError):
        return RequestError("model_not_found", f"{hub_id} is no hub id: {error}")
    if isinstance(error, OfflineModeIsEnabled) or isinstance(error.__cause__, OfflineModeIsEnabled):
        return RequestError("model_not_found", f"{hub_id} is not on disk, and HF_HUB_OFFLINE forbids fetching it")
    answer = error if isinstance(error, HfHubHTTPError) else error.__cause__
    if isinstance(answer, HfHubHTTPError):
        status = answer.response.status_code
        if status not in (401, 403, 404):
            problem = f"{hub_id} is not on disk, and the hub failed (HTTP {status})"
            return RequestError("model_not_found", problem, retryable=True)
        reason = _first_line(answer.server_message or answer)
        problem = f"{hub_id} is not on disk, and the hub does not give it (HTTP {status}: {reason})"
        return RequestError("model_not_found", f"{problem}; check the name, and HF_TOKEN for a private or gated model")
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        return RequestError("model_not_found", f"{hub_id} cannot be stored: {error}")
    problem = f"{hub_id} is not on disk, and the network failed: {_first_line(error)}"
    return RequestError("model_not_found", problem, retryable=True)


def _first_line(error: object) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
