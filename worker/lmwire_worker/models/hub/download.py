"""Download a model into the cache of the hub, in a thread, with progress and a way to cancel."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from huggingface_hub import snapshot_download
from tqdm.auto import tqdm

from ...engine.interface import Report
from .errors import explain
from .plan import Announce, check_plan, plan_download
from .resumable import fetch_large_files

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
        self.total = plan.missing_bytes
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
