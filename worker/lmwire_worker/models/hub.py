"""Find models in the cache of the hub, and download those that are not there."""

import errno
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from huggingface_hub import HfApi, snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled
from huggingface_hub.utils import filter_repo_objects
from mlx_lm.utils import DEFAULT_ALLOW_PATTERNS
from tqdm.auto import tqdm

from lmwire_protocol import RequestError

from ..engine.interface import Report
from .hub_cache import find_snapshot_folder, repository_of
from .model_files import read_json

CODE_PATTERN: Final = "*.py"
MODEL_PATTERNS: Final = (
    *(pattern for pattern in DEFAULT_ALLOW_PATTERNS if pattern != CODE_PATTERN),
    "weights*.safetensors",
    "speech_tokenizer/*.safetensors",
)
"""The files of a model: mlx-lm's patterns without code, and the weights of many models of speech."""
POLL_S: Final = 0.05
"""Interval at which a download reports its progress and notices a cancel, in seconds."""
Validate = Callable[[Path], dict[str, Any]]
"""Returns the config.json of a model folder, or raises RequestError if files are missing or damaged."""
INFO_TIMEOUT_S: Final = 10.0
"""Time for the hub to describe a model, in seconds."""
_COMMIT: Final = re.compile("[0-9a-f]{40}")
DISK_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)


def find_snapshot(hub_id: str, report: Report, validate: Validate, *, trust_remote_code: bool) -> Path:
    """Return the folder of a model's snapshot. Makes no network call if the snapshot is on disk and complete.

    Args:
        hub_id: The model's name on the hub.
        report: Receives the progress of a download.
        validate: Checks the files of a snapshot.
        trust_remote_code: Whether to fetch the model's Python files too.

    Raises:
        RequestError: model_not_found; retryable if the network failed.
        LoadCancelled: from `report`. Complete files stay, and are not fetched again.
    """
    patterns = [*MODEL_PATTERNS, CODE_PATTERN] if trust_remote_code else list(MODEL_PATTERNS)
    try:
        folder = _find_cached(hub_id, patterns)
        config = validate(folder)  # an interrupted download of another program leaves some files
    except (LocalEntryNotFoundError, HFValidationError, RequestError, OSError):
        return _fetch(hub_id, patterns, report)
    return _fetch(hub_id, patterns, report) if trust_remote_code and _lacks_code(folder, config) else folder


def _find_cached(hub_id: str, patterns: list[str]) -> Path:
    """Return a model's snapshot on disk. A cache that was copied may lack the file that names it.

    Args:
        hub_id: The model's name on the hub.
        patterns: The files of the model. The hub's library checks that those it knows of are there.

    Raises:
        LocalEntryNotFoundError, RequestError, OSError: No snapshot can be used.
    """
    try:
        return Path(snapshot_download(hub_id, allow_patterns=patterns, local_files_only=True))
    except LocalEntryNotFoundError:
        folder = find_snapshot_folder(repository_of(hub_id))
        if folder is None:
            raise
        if not _COMMIT.fullmatch(folder.name):
            return folder
        revision = folder.name
        return Path(snapshot_download(hub_id, revision=revision, allow_patterns=patterns, local_files_only=True))


def _lacks_code(folder: Path, config: dict[str, Any]) -> bool:
    """Return whether a snapshot was fetched without the code that it names."""
    settings = folder / "tokenizer_config.json"
    configs = [config, read_json(settings) if settings.exists() else {}]
    names_code = any(config.get(name) for config in configs for name in ("model_file", "auto_map"))
    return names_code and not any(folder.glob(CODE_PATTERN))


def _fetch(hub_id: str, patterns: list[str], report: Report) -> Path:
    download = _Download(hub_id, patterns)
    try:
        while not download.ended.wait(POLL_S):
            report("download", download.done, download.total, "bytes")
    finally:
        download.cancelled.set()
        download.ended.wait(1)  # it notices at the next chunk; a server that stands still is not waited for
    if isinstance(download.result, Path):
        return download.result
    raise _explain(hub_id, download.result)


def explain_absence(hub_id: str) -> RequestError | None:
    """Ask the hub for a model without fetching it, and return why it cannot be fetched; None if it can.

    Args:
        hub_id: The model's name on the hub.
    """
    try:
        HfApi().model_info(hub_id, timeout=INFO_TIMEOUT_S)
    except Exception as error:
        return _explain(hub_id, error)
    return None


class _Download:
    """A download in a thread, so that a server that stalls does not delay a cancel."""

    def __init__(self, hub_id: str, patterns: list[str]) -> None:
        self.done = 0
        self.total: int | None = None
        self.result: Path | Exception = RuntimeError("the download has not ended")
        self.ended = threading.Event()
        self.cancelled = threading.Event()
        threading.Thread(target=self._run, args=(hub_id, patterns), name="download", daemon=True).start()

    def _run(self, hub_id: str, patterns: list[str]) -> None:
        try:
            self.total = _missing_bytes(hub_id, patterns)
            bar = type("Bar", (_ProgressBar,), {"download": self})
            self.result = Path(snapshot_download(hub_id, allow_patterns=patterns, tqdm_class=bar))
        except Exception as error:
            self.result = error
        finally:
            self.ended.set()


def _missing_bytes(hub_id: str, patterns: list[str]) -> int | None:
    info = HfApi().model_info(hub_id, files_metadata=True)
    sizes = {file.rfilename: file.size for file in info.siblings or []}
    names = filter_repo_objects(sizes, allow_patterns=patterns)
    missing = [
        sizes[name] for name in names if not isinstance(try_to_load_from_cache(hub_id, name, revision=info.sha), str)
    ]
    return None if None in missing else sum(size or 0 for size in missing)


class _ProgressBar(tqdm):
    """A progress bar without output: the hub library reports its progress this way."""

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
        return RequestError("model_not_found", f"{hub_id} is not a hub id, which is owner/name: {error}")
    if isinstance(error, OfflineModeIsEnabled) or isinstance(error.__cause__, OfflineModeIsEnabled):
        return RequestError(
            "model_not_found",
            f"{hub_id} is not on disk, and HF_HUB_OFFLINE forbids fetching it; unset it, or give a folder",
        )
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
    problem = f"{hub_id} is not on disk, and the network failed: {_first_line(error)}; try again, or give a folder"
    return RequestError("model_not_found", problem, retryable=True)


def _first_line(error: object) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
