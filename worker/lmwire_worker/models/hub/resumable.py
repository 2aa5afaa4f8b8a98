"""Fetch large files of the hub so that an interrupted download goes on where it ended.

The hub's library keeps whole files only. A file of weights has several gigabytes, so a part of it is worth keeping.
The file that has arrived gets the name that the library looks for, and the library then links it into the snapshot.
"""

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urlsplit

from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import build_hf_headers

from .cache import repository_of
from .plan import PARTIAL_SUFFIX, DownloadPlan, RemoteFile

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
