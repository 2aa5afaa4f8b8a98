"""A worker's registry, session and scheduler in one process, with an engine that a test moves step by step.

The scheduler runs on a thread of its own, as in a worker, and stops wherever it would wait or compute. So a test can
produce any order of events, and repeat it.
"""

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import msgspec

from lmwire_protocol import Generate, Load, RequestError, Tokenize
from lmwire_protocol.events import State, Token
from lmwire_worker.engine.interface import (
    AdmittedRequest,
    Failed,
    InferenceCommand,
    InsufficientMemory,
    MemoryUsage,
    ModelInfo,
    Preparation,
    Report,
    RunnerEvent,
    TokenDelta,
)
from lmwire_worker.media import find_media_refs
from lmwire_worker.process.memory_pressure import MemoryPressure
from lmwire_worker.process.stderr_log import Log
from lmwire_worker.scheduling.scheduler import Scheduler
from lmwire_worker.session.lifecycle import LifecycleMonitor
from lmwire_worker.session.output_queue import OutputQueue
from lmwire_worker.session.request_registry import RequestRegistry
from lmwire_worker.session.v1 import Session
from support.process.worker_process import SECONDS, Event
from support.runners.clock import Clock

ROWS = 2
"""Maximum number of rows in a batch; small, so that requests wait for a row."""

LARGE = "7"
"""End of a prompt for which there is enough memory only while no other request runs."""


class Gate:
    """A gate at which the engine's thread and the test's thread take turns."""

    def __init__(self) -> None:
        self._orders: SimpleQueue[str] = SimpleQueue()
        self._stops: SimpleQueue[str] = SimpleQueue()

    def stop(self, where: str) -> str:
        """Report where the engine stops, and wait for an order (engine's thread)."""
        self._stops.put(where)
        return self._orders.get()

    def leave(self, how: str) -> None:
        """Report that the engine has ended (engine's thread)."""
        self._stops.put(how)

    def wait(self) -> str:
        """Return where the engine stops next (test's thread)."""
        return self._stops.get(timeout=SECONDS)

    def order(self, order: str) -> str:
        """Let the engine continue, and return where it stops next (test's thread)."""
        self._orders.put(order)
        return self.wait()


class SteppedRegistry(RequestRegistry):
    """A registry that stops where the engine would wait."""

    def __init__(self, outbox: OutputQueue, gate: Gate, clock: Callable[[], float]) -> None:
        super().__init__(outbox, clock)
        self._gate = gate

    def take_new_within(self, seconds: float, unless: Callable[[], bool] = lambda: False) -> Any:
        if not self._inbox and not unless():
            self._gate.stop("waiting for others")
        return super().take_new_within(0)

    def _wait_in_state(self, state: State) -> None:
        self.activity.become(state)
        self._lock.release()
        try:
            self._gate.stop(state)
        finally:
            self._lock.acquire()
        self.activity.become("running")


class Events(OutputQueue):
    """An output queue that keeps the events for the test."""

    def __init__(self) -> None:
        super().__init__(lambda data: None)
        self._events: list[Event] = []
        self.host_reads = True

    @property
    def is_full(self) -> bool:
        return not self.host_reads

    def put_tokens(self, token: Token) -> None:
        self._events.append({"event": "token", "id": token.id, "token_ids": list(token.token_ids)})

    def put_stream(self, line: bytes) -> None:
        self._events.append(msgspec.json.decode(line))

    def put_terminal(self, id: str, line: bytes) -> None:
        self._events.append(msgspec.json.decode(line))

    def put_reply(self, line: bytes) -> None:
        self._events.append(msgspec.json.decode(line))

    def take(self) -> list[Event]:
        """Return the events put since the last call."""
        events, self._events = self._events, []
        return events


class SteppedPrefetch:
    """A preparation of a request that is done once `finish` is called."""

    def __init__(self, ready: Callable[[], None]) -> None:
        self._ready = ready
        self.done = False

    def cancel(self) -> None:
        pass

    def finish(self) -> None:
        self.done = True
        self._ready()


class SteppedRunner:
    """A runner that gives each row a token per step. Orders end rows: none, first, last, all, or fail (all fail)."""

    max_batch_size = ROWS
    batch_wait_s = 0.0
    model = ModelInfo("gated", "gated", 100, 0, 0, 100, 0, ["generate", "chat"])

    def __init__(self, gate: Gate, started: Callable[[str], None]) -> None:
        self._gate = gate
        self._started = started
        self.taken: dict[int, int] = {}
        """Number of choices, by the request's key."""
        self.gatherings: dict[str, SteppedPrefetch] = {}
        """Preparations, by the first image's data."""

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> SteppedPrefetch | None:
        if not (items := find_media_refs(request)):
            return None
        name = items[0].media.data
        assert name is not None
        return self.gatherings.setdefault(name, SteppedPrefetch(ready))

    def add(
        self,
        key: int,
        request: InferenceCommand,
        seed: int,
        *,
        plain_text: bool = False,
        prepared: Preparation | None = None,
    ) -> AdmittedRequest:
        name = request.prompt if isinstance(request, Generate) else find_media_refs(request)[0].media.data
        assert isinstance(name, str)
        assert prepared is self.gatherings.get(name) and (prepared is None or prepared.done)
        assert not self.taken or sum(self.taken.values()) < ROWS
        if self.taken and name.endswith(LARGE):
            raise InsufficientMemory
        self._started(name)
        self.taken[key] = request.n if isinstance(request, Generate) else 1
        return AdmittedRequest(1)

    def step(self) -> list[RunnerEvent]:
        order = self._gate.stop("step")
        held, keys = self.taken, [*self.taken]
        ending = {"first": keys[:1], "last": keys[-1:], "all": keys, "fail": keys}.get(order, [])
        self.taken = {key: choices for key, choices in held.items() if key not in ending}
        if order == "fail":
            return [Failed(key, RequestError("engine_error", "as ordered")) for key in ending]
        return [
            TokenDelta(key, "x", [7], 1, "stop" if key in ending else None, choice=choice)
            for key, choices in held.items()
            for choice in range(choices)
        ]

    def remove(self, key: int) -> Sequence[RunnerEvent]:
        del self.taken[key]
        return [TokenDelta(key, "held back", [])]

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        raise AssertionError("is not asked for")

    def memory(self) -> MemoryUsage:
        return MemoryUsage()

    def cache_stats(self) -> None:
        return None

    def clear_cache(self) -> int:
        return 0

    def release_caches(self) -> None:
        self._started("released caches")

    def close(self) -> int:
        assert not self.taken
        return 0


class SteppedModelLoader:
    """A loader that obeys orders: report, replace, or fail. Any other order completes the load."""

    names = ["gated"]
    features: list[str] = []

    def __init__(self, gate: Gate, started: Callable[[str], None]) -> None:
        self._gate = gate
        self._started = started
        self.runner: SteppedRunner | None = None

    def prepare(self) -> None:
        pass

    def read_pressure(self) -> MemoryPressure:
        return MemoryPressure.NORMAL

    def model_closed(self) -> None:
        pass

    def flush(self) -> None:
        pass

    def open(self, request: Load, report: Report, release_current_model: Callable[[], None]) -> SteppedRunner:
        self._started(request.path)
        while (order := self._gate.stop("load")) in ("report", "replace", "fail"):
            if order == "report":
                report("read", 1, 2, "steps")
            elif order == "replace":
                release_current_model()
            else:
                raise RequestError("bad_model", "as ordered")
        release_current_model()
        self.runner = SteppedRunner(self._gate, self._started)
        return self.runner


class Bystander(LifecycleMonitor):
    """A lifecycle monitor that does nothing."""

    def __init__(self) -> None:
        pass

    def exit_with_host(self, pid: int) -> None:
        pass

    def start_quit_timeout(self) -> None:
        pass

    def deadlines_changed(self) -> None:
        pass


class Silence(Log):
    """A log that drops everything."""

    def __init__(self) -> None:
        pass

    def __call__(self, text: str) -> None:
        pass


class SteppedWorker:
    """The parts of a worker, put together.

    Args:
        started: receives the prompt or the first image of each request, and the path of each load, when it starts.
    """

    def __init__(self, started: Callable[[str], None]) -> None:
        self._gate = Gate()
        self.events = Events()
        self.clock = Clock()
        """The worker's clock. The test moves it."""
        self.registry = SteppedRegistry(self.events, self._gate, self.clock)
        self._engine, log = (engine := SteppedModelLoader(self._gate, started)), Silence()
        self.scheduler = Scheduler(self.registry, self.events, engine, log)
        self.session = Session(
            self.registry, self.events, self.scheduler, Bystander(), engine.names, (), log, self.registry.drain
        )
        threading.Thread(target=self._run, daemon=True).start()
        self.engine = self._gate.wait()
        """Place where the engine has stopped: idle, step, load, paused, waiting for others; over once it has ended."""

    def order(self, order: str) -> None:
        """Let the engine continue until it stops again."""
        self.engine = self._gate.order(order)

    @property
    def runner(self) -> SteppedRunner:
        """Runner that was opened last."""
        assert self._engine.runner
        return self._engine.runner

    @property
    def gatherings(self) -> dict[str, SteppedPrefetch]:
        """Preparations in that runner, by the first image's data."""
        return self.runner.gatherings

    def _run(self) -> None:
        try:
            self.scheduler.run()
        except BaseException as error:
            self._gate.leave(f"failed: {error!r}")
            raise
        self._gate.leave("over")
