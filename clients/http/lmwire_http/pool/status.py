"""Snapshots of the pool: leases, served models, the status of their workers, and the progress of loads."""

import logging
import os
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from lmwire import AsyncWorker, ModelKind
from lmwire_protocol import events

ModelState: TypeAlias = Literal["loaded", "loading", "unloaded"]
_STEPS: Final = 10
"""Number of lines for a download, without the first one."""
_log = logging.getLogger("lmwire_http")

OnProgress: TypeAlias = Callable[[events.Progress], None]
ShowProgress: TypeAlias = Callable[[str], AbstractContextManager[OnProgress]]
"""Shows one load or prefill of the model with this name. The block gets a function that takes the progress events."""


class LoadProgress(Struct, kw_only=True):
    """The step of a load that runs."""

    stage: str
    """The step's name, such as `download` or `read`, as in PROTOCOL.md."""
    current: int
    total: int | UnsetType = UNSET
    """Absent if it is unknown."""
    unit: str


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker that is reserved for one request."""

    worker: AsyncWorker
    model: events.ModelDone
    """The model that the worker has loaded."""
    model_id: str
    """The model's id on this server, whatever name the client gave."""
    queued_s: float
    """Time that the request waited in the queue while its model was loaded, in seconds."""
    release: Callable[[], None]
    """Free the request's rows before the block ends, once the worker has finished the request."""
    media_decoded: Callable[[], None]
    """Let the next client's images and sounds be decoded, once the worker has done so with the request's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model that requests can name."""

    id: str
    path: str
    """Folder that the worker loads, or a name that only the worker knows."""
    size_bytes: int
    """Total size of the model files, in bytes; 0 if unknown."""
    context_len: int | None
    """Context length in tokens; None if unknown."""
    model_type: str | None
    """The architecture's name in config.json; None if unknown."""
    bits: int | None
    """Bits of a quantized weight; None if unknown."""
    kind: ModelKind | None
    """The kind of a model that is on this machine; None if unknown."""
    loaded: events.ModelDone | None
    """The worker's description of the model; None while it is not loaded."""
    state: ModelState
    load_progress: LoadProgress | None = None
    """The last report of the worker that loads the model; None without one."""

    @property
    def created(self) -> int:
        """Time of the model files, in seconds since 1970; 0 if unknown."""
        try:
            return int(os.path.getmtime(self.path))
        except (OSError, ValueError):  # a name that only the worker knows
            return 0


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that a request has loaded."""

    model: ServedModel
    seconds: float
    """Time until the model could serve requests, in seconds; almost 0 if it was in memory."""
    memory_bytes: int | None
    """Memory that its workers use, in bytes; None if they do not report it."""


@dataclass(frozen=True, slots=True)
class UnloadedModel:
    """A model that a request has unloaded."""

    id: str
    freed_bytes: int | None
    """Memory that its workers used, in bytes; None if they did not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStatus:
    """One worker of a model."""

    pid: int | None
    """Process id; None while no worker has the model loaded."""
    in_flight: int
    """Number of requests on the worker."""
    restarts: int
    """Number of workers that replaced a dead one since the server started."""
    deaths: int
    """Number of workers that exited, or failed to start, without a request to exit."""
    hangs: int
    """Number of the deaths that were workers without progress, which the server ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """A model that is or was in memory."""

    id: str
    path: str
    loaded: events.ModelDone | None
    """The loaded model; None while it is not loaded."""
    loading: bool
    """True while the model waits for memory or is being loaded."""
    remaining_s: float | None
    """Time until the model is unloaded if no request comes, in seconds; None if it stays."""
    waiting: int
    """Number of requests that wait for the model."""
    replicas: list[ReplicaStatus]


@contextmanager
def log_downloads(model: str) -> Generator[OnProgress]:
    """Log a line at each tenth of a download while the block runs; see `ShowProgress`."""
    last = -1

    def log(event: events.Progress) -> None:
        nonlocal last
        if event.stage != "download" or not event.total:
            return
        tenth = event.current * _STEPS // event.total
        if tenth > last:
            last = tenth
            _log.info("downloading %s: %d of %d MB", model, event.current // 10**6, event.total // 10**6)

    yield log
