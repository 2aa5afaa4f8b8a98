"""Download a model into the cache of the hub, in a thread, with progress and a way to cancel."""

import fcntl
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url, snapshot_download
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import build_hf_headers
from tqdm.auto import tqdm

from ...engine.interface import Report
from .cache import repository_of
from .errors import explain
from .plan import PARTIAL_SUFFIX, Announce, DownloadPlan, RemoteFile, check_plan, check_space, plan_download

POLL_S: Final = 0.05
"""Interval at which a download reports its progress and notices a cancel, in seconds."""


def download(
    hub_id: str,
    patterns: Sequence[str],
    report: Report,
    *,
    revision: str | None = None,
    announce: Announce | None = None,
) -> Path:
    """Download a model's missing files, and return its snapshot.

    Args:
        hub_id: The model's name on the hub.
        patterns: Patterns of the names of the wanted files.
        report: Receives the progress. What it raises cancels the download. What has arrived stays.
        revision: A branch, tag or commit; None for the main branch.
        announce: Receives the plan before the first file.

    Raises:
        RequestError: model_not_found; retryable if the network failed.
    """
    work = _Download(hub_id, patterns, revision, announce)
    try:
        while not work.ended.wait(POLL_S):
            if work.plan and work.plan.missing:
                check_space(work.plan)
            report("download", work.done, work.total, "bytes")
    finally:
        work.cancelled.set()
        work.ended.wait(1)  # it notices at the next chunk; a server that stands still is not waited for
    if isinstance(work.result, Path):
        return work.result
    raise explain(hub_id, work.result)


class _Download:
    """A download in a thread, so that a server that stalls does not delay a cancel."""

    def __init__(self, hub_id: str, patterns: Sequence[str], revision: str | None, announce: Announce | None) -> None:
        self.plan: DownloadPlan | None = None
        self.total: int | None = None
        self.result: Path | BaseException = RuntimeError("the download has not ended")
        self.ended = threading.Event()
        self.cancelled = threading.Event()
        self.large_bytes = self.small_bytes = 0
        self._asked = hub_id, list(patterns), revision
        self._announce = announce
        threading.Thread(target=self._run, name="download", daemon=True).start()

    @property
    def done(self) -> int:
        """Number of bytes that are on this machine, of those that were missing."""
        return self.large_bytes + self.small_bytes

    def _run(self) -> None:
        try:
            self.result = self._fetch(*self._asked)
        except BaseException as error:
            self.result = error
        finally:
            self.ended.set()

    def _fetch(self, hub_id: str, patterns: list[str], revision: str | None) -> Path:
        plan = plan_download(hub_id, patterns, revision)
        check_plan(plan)
        if self._announce:
            self._announce(plan)
        self.plan, self.total = plan, plan.missing_bytes
        fetch_large_files(plan, type("Bar", (_FileBar,), {"download": self}))
        bar = type("Bar", (_SnapshotBar,), {"download": self})
        return Path(snapshot_download(hub_id, revision=revision, allow_patterns=patterns, tqdm_class=bar))


class _SilentBar(tqdm):
    """A progress bar without output: the hub's library reports its progress this way."""

    download: _Download

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._counts_bytes = kwargs.get("unit") == "B"
        super().__init__(*args, **(kwargs | {"disable": True}))

    def update(self, n: float | None = 1) -> None:
        if self.download.cancelled.is_set():
            raise InterruptedError("the download was cancelled")
        self.n += n or 0
        if self._counts_bytes:
            self._count(int(n or 0))

    def _count(self, added: int) -> None:
        """Add to the bytes of the download."""


class _FileBar(_SilentBar):
    """The progress of one large file. Its first bytes may have arrived earlier."""

    _counting = threading.Lock()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._count(int(kwargs.get("initial") or 0))

    def _count(self, added: int) -> None:
        with self._counting:
            self.download.large_bytes += added


class _SnapshotBar(_SilentBar):
    """The progress of all small files. There are several such bars, for bytes received and bytes written."""

    def _count(self, added: int) -> None:
        self.download.small_bytes = max(self.download.small_bytes, int(self.n))


# Large files, so that an interrupted download goes on where it ended.

MIN_BYTES: Final = 16 * 2**20
"""Smallest size of a file that is fetched in this way. The library fetches smaller ones in seconds."""
_THREADS: Final = 4


def fetch_large_files(plan: DownloadPlan, progress_bar: type[Any]) -> None:
    """Fetch the plan's large files into the cache, from the byte at which an earlier download ended.

    Args:
        plan: The download.
        progress_bar: A class of progress bars in tqdm's form, made once for each file.
    """
    large = [file for file in plan.missing if _is_resumable(file)]
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda file: _fetch(plan, file, progress_bar), large))  # raises what the first failure raised


def _is_resumable(file: RemoteFile) -> bool:
    """Return whether a file is large, and not larger than what the hub sends in one response."""
    return file.size is not None and MIN_BYTES <= file.size <= constants.MAX_HTTP_DOWNLOAD_SIZE


def _fetch(plan: DownloadPlan, file: RemoteFile, progress_bar: type[Any]) -> None:
    headers = build_hf_headers()
    url = hf_hub_url(plan.hub_id, file.name, revision=plan.commit)
    known = get_hf_file_metadata(url, headers=headers)
    blob = repository_of(plan.hub_id) / "blobs" / os.path.basename(known.etag or "")
    if not known.etag or blob.exists():
        return
    if urlsplit(known.location).netloc != urlsplit(url).netloc:
        headers.pop("authorization", None)  # the token belongs to the hub, and not to who stores the file
    blob.parent.mkdir(parents=True, exist_ok=True)
    partial = blob.with_name(blob.name + PARTIAL_SUFFIX)
    with partial.open("ab") as arrived:
        if not _lock(arrived.fileno()):
            return  # another process fetches it; the library waits for its own lock
        http_get(
            known.location,
            arrived,
            resume_size=arrived.tell(),
            headers=headers,
            expected_size=known.size,
            displayed_filename=file.name,
            tqdm_class=progress_bar,
        )
        partial.replace(blob)


def _lock(descriptor: int) -> bool:
    """Return whether this process now holds the file's lock. It ends with the descriptor."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
