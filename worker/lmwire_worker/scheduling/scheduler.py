"""The engine's loop: starts requests in order, applies cancels, makes one step of the runner, delivers its events.

It runs on the process's main thread, which alone calls the runner, and it knows no model library. One turn of the loop
takes one step, so a cancel takes effect within a step.
"""

import threading
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from msgspec.structs import asdict

from lmwire_protocol import (
    Cache,
    Chat,
    Command,
    Embed,
    Generate,
    Load,
    RequestError,
    Speak,
    Tokenize,
    Transcribe,
    Unload,
)
from lmwire_protocol.events import (
    CacheDone,
    CacheStats,
    Done,
    MemoryStats,
    ModelDone,
    Progress,
    Stage,
    TokenizeDone,
    TokenStats,
    Unit,
    UnloadDone,
)

from ..engine.interface import (
    EmbeddingOutput,
    Failed,
    InferenceCommand,
    InsufficientMemory,
    LoadCancelled,
    MemoryUsage,
    ModelLoader,
    ModelRunner,
    OutputEvent,
    PrefillProgress,
    RunnerEvent,
    Status,
    TokenDelta,
    ToolCallDelta,
    TranscriptionProgress,
)
from ..process.memory_pressure import MemoryPressure
from ..process.stderr_log import Log
from ..session.output_queue import OutputQueue
from ..session.request_registry import RequestRegistry
from ..session.request_state import Request

_PROGRESS_SECONDS = 0.1
"""At most ten progress events a second for one request."""

_PREPARING_S = 0.005
"""Time that the first request waits for another that is being prepared. Short prompts take less than 1 ms."""

_PATH_ERRORS = ("model_not_found", "bad_model")
"""Codes of errors about a load's `path`, unless the error names another field."""

_KINDS: Final = {
    "embed": "an embedding model",
    "transcribe": "a model that transcribes",
    "speak": "a model that speaks",
}
"""For each command, the models that serve it; language models serve the others."""


class Scheduler:
    """Serves requests on one model runner at a time.

    Args:
        registry: The requests in flight. All events pass through it.
        output: The queue of output; the engine pauses while it is full.
        loader: Opens models.
        log: Receives failures.
    """

    def __init__(self, registry: RequestRegistry, output: OutputQueue, loader: ModelLoader, log: Log) -> None:
        self._registry = registry
        self._output = output
        self._loader = loader
        self._log = log
        self.runner: ModelRunner | None = None
        self._waiting = FairQueue()
        """Requests to start, in order."""
        self._active: dict[int, Request] = {}
        self._capacity_changed = False
        self._blocked_on_memory: Request | None = None
        """The request that did not fit into memory; no request has ended since."""
        self._keys = 0
        self.pressure = PressureRelief(loader.read_pressure, registry.wake, log)
        self.tokens = TokenStats(prompt=0, completion=0)

    def run(self) -> None:
        """Serve requests until the registry has drained."""
        self._registry.activity.become("running")
        due = self.pressure.is_due
        while (arrived := self._registry.take_new(block=not (self._active or self._waiting), unless=due)) is not None:
            self._waiting.enqueue(arrived)
            self._apply_cancels()
            if self.pressure.relieve(self.runner):
                self._note_capacity()
            was_empty = not self._active
            if self._waiting and (arrived or self._capacity_changed or self._waiting[0].status is Status.ENDED):
                self._start_waiting()
                if was_empty and self._active:
                    self._fill_batch()
            if not self._active:
                if self._waiting:  # they are being prepared
                    self._registry.wait_unless(lambda: self._capacity_changed, "idle")
            elif self._output.is_full:
                self._registry.wait_unless(lambda: not self._output.is_full, "paused")
            else:
                self._registry.activity.progressed()
                self._deliver(self._require_runner().step())
        self.pressure.stop()

    # Called by the reader, from its own thread.

    def memory(self) -> MemoryStats:
        """Return the model library's memory."""
        runner = self.runner
        memory = runner.memory() if runner else MemoryUsage()
        return MemoryStats(memory.active_bytes, memory.cache_bytes, memory.peak_bytes)

    def cache(self) -> CacheStats | None:
        """Return the statistics of the prefix cache; None without a model or a cache."""
        runner = self.runner
        return runner.cache_stats() if runner else None

    # Requests.

    def _apply_cancels(self) -> None:
        for request in self._registry.take_cancelled():
            if self._active.get(request.key) is request:
                self._deliver(self._require_runner().remove(request.key))
                self._forget(request)
                self._registry.end(request, request.cancellation())

    def _start_waiting(self) -> None:
        """Start waiting requests in order. None overtakes a barrier; a full runner does not delay an `info`."""
        self._capacity_changed = False
        held_back: list[Request] = []
        full = False
        while self._waiting:
            request = self._waiting.popleft()
            if request.status is Status.ENDED:
                continue  # cancelled meanwhile: a cancelled load delays nothing
            alone = request.writer.is_serial or request.command.barrier
            if alone and (self._active or held_back):
                held_back.append(request)
                break
            steps = isinstance(request.command, InferenceCommand)
            if not self._is_prepared(request):
                held_back.append(request)  # others may overtake it: its preparation may take long
            elif steps and (full or not self._may_fit(request)):
                full = True  # for later requests too: a small one does not overtake a large one
                held_back.append(request)
            elif self._registry.start(request) and not self._start_one(request):
                full = True
                held_back.append(request)
        self._waiting.extendleft(reversed(held_back))

    def _fill_batch(self) -> None:
        """Start requests that arrive just after the first, while the runner waits for a larger batch."""
        runner = self._require_runner()
        while waits_s := runner.batch_wait_s:
            running = len(self._active)
            if self._is_preparing():
                waits_s = max(waits_s, _PREPARING_S)
            arrived = self._registry.take_new_within(waits_s, unless=lambda: self._capacity_changed)
            self._waiting.enqueue(arrived)
            self._start_waiting()
            if len(self._active) == running and not (arrived and self._is_preparing()):
                break

    def _is_preparing(self) -> bool:
        """Return whether a waiting request is being prepared."""
        return any(request.status is Status.PREPARING for request in self._waiting)

    def _is_prepared(self, request: Request) -> bool:
        """Return whether a waiting request is prepared, and start its preparation."""
        if self.runner and request.silent:
            request.apply_sampling_defaults(self.runner.model.sampling_defaults)
        command = request.command
        if (
            request.preparation is None
            and self.runner
            and isinstance(command, InferenceCommand | Tokenize)
            and not request.deferred_error
        ):
            try:
                request.preparation = self.runner.prepare(command, self._prepared, request.line_bytes)
            except BaseException as error:
                request.deferred_error = error if isinstance(error, RequestError) else self._failure(request, error)
            # Another thread may have cancelled or ended the request in the meantime.
            if (started := request.preparation) is not None and request.cancel_reason:
                started.cancel()
            if request.status is Status.ENDED:
                request.preparation = None
        return request.status is not Status.PREPARING

    def _prepared(self) -> None:
        """Wake the engine for a prepared request. Called from another thread."""
        self._capacity_changed = True
        self._registry.wake()

    def _may_fit(self, request: Request) -> bool:
        """Return whether the batch has rows for a request. One with too many choices starts in an empty batch."""
        if request is self._blocked_on_memory or (self._active and self.pressure.pauses_admission):
            return False
        taken = sum(active.state.unfinished_choices for active in self._active.values())
        return not (self.runner and taken) or taken + request.rows <= self.runner.max_batch_size

    def _start_one(self, request: Request) -> bool:
        """Serve or start a request, and return False if it must wait for memory."""
        self._registry.activity.progressed()
        try:
            outcome = request.deferred_error or (
                request.cancellation() if request.cancel_reason else self._perform(request)
            )
        except InsufficientMemory:
            self._blocked_on_memory = request
            self._registry.requeue(request)
            return False
        if outcome is not None:
            self._registry.end(request, outcome)
        return True

    def _perform(self, request: Request) -> Done | RequestError | None:
        """Return a command's result or error; None if the runner goes on with it. Raises InsufficientMemory."""
        try:
            match request.command:
                case Load() as load:
                    return self._load(request, load)
                case Unload():
                    return UnloadDone(id=request.id, freed_bytes=self._close_runner())
                case Generate() | Chat() | Embed() | Transcribe() | Speak() as command:
                    return self._add(request, command)
                case Tokenize() as command:
                    return self._tokenize(request, command)
                case Cache():
                    return self._clear_cache(request)
                case _:
                    return self._describe(request)
        except InsufficientMemory:
            raise
        except RequestError as error:
            return error
        except BaseException as error:  # for example a tokenizer that fails on one prompt: the others go on
            return self._failure(request, error)

    def _failure(self, request: Request, error: BaseException) -> RequestError:
        """Log an exception that no code expected, and return the error of its request."""
        self._log(f"{request.command.name} {request.id!r} failed:\n{traceback.format_exc()}")
        return RequestError("engine_error", f"the model library failed: {type(error).__name__}: {error}")

    def _add(self, request: Request, command: InferenceCommand) -> None:
        runner = self._runner_for(command)
        self._keys += 1
        request.key = self._keys
        request.admitted = runner.add(
            request.key, command, request.seed, plain_text=request.writer.plain_text, prepared=request.preparation
        )
        request.preparation = None  # its images would take memory until the answer ends
        self.tokens.prompt += request.admitted.prompt_tokens
        self._active[request.key] = request
        self._waiting.advance(request.rows)

    def _tokenize(self, request: Request, command: Tokenize) -> TokenizeDone:
        tokens, text = self._runner_for(command).tokenize(command, request.preparation)
        if not command.count_only:
            self._registry.deliver([(request, TokenDelta(request.key, text, tokens))])
        return TokenizeDone(id=request.id, count=len(tokens))

    def _clear_cache(self, request: Request) -> CacheDone:
        freed_bytes = self._require_runner().clear_cache()
        self._note_capacity()
        return CacheDone(id=request.id, freed_bytes=freed_bytes)

    # Models.

    def _load(self, request: Request, load: Load) -> ModelDone:
        def report(stage: Stage, current: int, total: int | None, unit: Unit) -> None:
            if request.cancel_reason:
                raise LoadCancelled
            self._registry.activity.progressed()
            self._progress(request, stage, current, total, unit)

        self._registry.activity.become("loading")
        try:
            self.runner = self._loader.open(load, report, self._release_runner)
        except LoadCancelled:
            raise RequestError("cancelled", "the load was cancelled") from None
        except RequestError as error:
            error.field = error.field or ("path" if error.code in _PATH_ERRORS else None)
            raise
        finally:
            self._registry.activity.become("running")
        self._registry.model_loaded = True
        self.pressure.start()
        description = self._describe(request)
        if description.tool_format_note:
            self._log(description.tool_format_note)
        return description

    def _release_runner(self) -> None:
        self._close_runner()

    def _close_runner(self) -> int:
        runner, self.runner = self.runner, None
        self._registry.model_loaded = False
        freed_bytes = runner.close() if runner else 0
        self._loader.model_closed()
        return freed_bytes

    def _describe(self, request: Request) -> ModelDone:
        runner = self._require_runner()
        fields = asdict(runner.model)
        request.tokenizer_vocab_size = fields.pop("tokenizer_vocab_size")
        return ModelDone(id=request.id, **fields, batch_size=runner.max_batch_size)

    def _runner_for(self, command: Command) -> ModelRunner:
        runner = self._require_runner()
        _check_capability(command.name, runner.model.path, runner.model.capabilities)
        return runner

    def _require_runner(self) -> ModelRunner:
        if self.runner is None:
            raise RequestError("not_loaded", "no model is loaded; send a load first")
        return self.runner

    # The events of a step.

    def _deliver(self, events: Sequence[RunnerEvent]) -> None:
        now = self._registry.clock()
        generated: list[tuple[Request, TokenDelta | ToolCallDelta]] = []
        ended: set[Request] = set()
        for event in events:
            request = self._active[event.key]
            if isinstance(event, TokenDelta):
                if event.generated:
                    self.tokens.completion += event.generated
                    request.first_token_at = request.first_token_at or now
                generated.append((request, event))
                if event.finish_reason is not None:
                    ended.add(request)
                    self._note_capacity()  # the choice's row is free, even if the request goes on
            elif isinstance(event, ToolCallDelta):
                generated.append((request, event))
            elif isinstance(event, PrefillProgress):
                self._progress(request, "prefill", event.done, event.total, "tokens")
            elif isinstance(event, Failed):
                self._fail(request, event)
            else:
                self._deliver_one(request, event)
                ended.add(request)
        if generated:
            self._registry.deliver(generated)
        for request in ended:
            if request.state.is_complete:
                self._forget(request)

    def _deliver_one(self, request: Request, event: OutputEvent) -> None:
        if isinstance(event, EmbeddingOutput):
            self.tokens.prompt += event.prompt_tokens
        elif isinstance(event, TranscriptionProgress):
            self._progress(request, "transcribe", int(event.done_s), int(event.duration_s), "seconds")
        self._registry.deliver([(request, event)])

    def _fail(self, request: Request, failure: Failed) -> None:
        self._log(f"{request.command.name} {request.id!r} failed: {failure.error.message}")
        self._forget(request)
        self._registry.end(request, failure.error)

    def _forget(self, request: Request) -> None:
        del self._active[request.key]
        self._note_capacity()

    def _note_capacity(self) -> None:
        self._capacity_changed = True
        self._blocked_on_memory = None

    def _progress(self, request: Request, stage: Stage, current: int, total: int | None, unit: Unit) -> None:
        now = self._registry.clock()
        if now - request.progress_at >= _PROGRESS_SECONDS:
            request.progress_at = now
            event = Progress(id=request.id, stage=stage, current=current, total=total, unit=unit)
            self._registry.send_progress(request, request.writer.progress(event))


def _check_capability(command: str, path: str, capabilities: Collection[str]) -> None:
    """Check that a loaded model can serve a command.

    Args:
        command: The command's name.
        path: The model's folder.
        capabilities: The model's capabilities.

    Raises:
        RequestError: unsupported.
    """
    if command not in capabilities:
        kind = _KINDS.get(command, "a language model")
        problem = f"{path} cannot serve {command}; it can serve {', '.join(capabilities)}. Load {kind} for it"
        raise RequestError("unsupported", problem)


class FairQueue(deque[Request]):
    """Requests to start: those that need few rows before those that need many.

    The order is by virtual finish time. If the waiting requests got rows one by one in turn, a request would have its
    last row in as many rounds as it has choices. So later requests overtake it only until then.
    https://en.wikipedia.org/wiki/Weighted_fair_queueing
    """

    def __init__(self) -> None:
        super().__init__()
        self._round = 0.0
        """Virtual time: rows that each waiting request would have by now."""

    def enqueue(self, requests: Iterable[Request]) -> None:
        """Insert requests by their virtual finish time."""
        for request in requests:
            request.finish_round = self._round + request.rows
            place = len(self)
            while place and _is_due_later(self[place - 1], request):
                place -= 1
            self.insert(place, request)

    def advance(self, rows: int) -> None:
        """Advance the virtual time, because a request that has left the queue gets its rows."""
        self._round += rows / (1 + len(self))


def _is_due_later(earlier: Request, later: Request) -> bool:
    """Return whether a later request starts first: both need rows, and it would finish in an earlier round.

    Args:
        earlier: The request that waits already.
        later: The new request.
    """
    both_run = isinstance(earlier.command, InferenceCommand) and isinstance(later.command, InferenceCommand)
    return both_run and not earlier.writer.is_serial and later.finish_round < earlier.finish_round


# While the system is short of memory, the worker frees caches, and admits one request at a time.

POLL_S: Final = 1.0
"""Time between two readings of the pressure, in seconds."""
_MESSAGES: Final = {
    MemoryPressure.NORMAL: "the system has enough memory again",
    MemoryPressure.WARNING: "the system is short of memory; the worker frees its caches",
    MemoryPressure.CRITICAL: "the system is critically short of memory; the worker frees its caches, and starts a "
    "waiting request only while no other runs",
}


class PressureRelief:
    """Reads the pressure on a thread of its own. The engine's thread acts on it between two steps.

    Args:
        read: Returns the pressure. Any thread may call it.
        wake: Makes a waiting engine check its state.
        log: Receives a line when the level changes.
    """

    def __init__(self, read: Callable[[], MemoryPressure], wake: Callable[[], None], log: Log) -> None:
        self._read, self._wake, self._log = read, wake, log
        self._level = MemoryPressure.NORMAL
        self._is_due = False
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start to read the pressure, unless that has started."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="memory-pressure", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop to read the pressure, without waiting."""
        self._stopped.set()

    def is_due(self) -> bool:
        """Return whether `relieve` has something to do."""
        return self._is_due

    @property
    def pauses_admission(self) -> bool:
        """True while a request may start only if no other runs."""
        return self._level is MemoryPressure.CRITICAL

    def update(self, level: MemoryPressure) -> None:
        """Note the present level. While it is critical, each call makes a relief due.

        Args:
            level: The pressure now.
        """
        if level is self._level and level is not MemoryPressure.CRITICAL:
            return
        has_changed = level is not self._level
        self._level = level
        self._is_due = True
        self._wake()
        if has_changed:  # last: whoever reads the line may rely on it
            self._log(_MESSAGES[level])

    def relieve(self, runner: ModelRunner | None) -> bool:
        """Free the runner's caches if the pressure is high, and return whether requests may start that had to wait.

        Args:
            runner: The present runner; None without a model.
        """
        if not self._is_due:
            return False
        self._is_due = False
        if runner and self._level is not MemoryPressure.NORMAL:
            runner.release_caches()
        return True

    def _watch(self) -> None:
        while not self._stopped.is_set():
            self.update(self._read())
            self._stopped.wait(POLL_S)
