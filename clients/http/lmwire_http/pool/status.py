"""What the pool tells of itself."""

from collections.abc import Callable
from dataclasses import dataclass

from lmwire import AsyncWorker
from lmwire_protocol import events


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker for one request."""

    worker: AsyncWorker
    model: events.ModelDone
    """What it has loaded."""
    name: str
    """What the model is called here, however the client called it."""
    queued_s: float
    """How long the request was queued, its model being in memory."""
    end: Callable[[], None]
    """To be called when the worker has ended the request, if that is before the block's end: others wait for rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model that can be asked for."""

    id: str
    path: str
    """What a worker is told to load: a folder, or what the worker knows it by."""
    size_bytes: int
    """Of its files; 0 when that is not known."""
    context_len: int | None
    """Tokens of prompt and answer together; None when that is not known."""
    loaded: events.ModelDone | None
    """What a worker says of it; None while none has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFigures:
    """One worker of a model."""

    pid: int | None
    """Its process; None while there is none that has the model."""
    in_flight: int
    """Requests on it."""
    restarts: int
    """Workers that came up in place of one that had died, since the server started."""
    deaths: int
    """Workers that ended, or did not come up, and were not told to."""
    hangs: int
    """Those of them that made no progress, and were ended for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidentFigures:
    """A model that is, or was, in memory."""

    id: str
    path: str
    model: events.ModelDone | None
    """What is loaded; None while nothing is."""
    loading: bool
    """Whether it waits for room, or is being read."""
    waiting: int
    """Requests that wait for the model."""
    replicas: list[ReplicaFigures]
