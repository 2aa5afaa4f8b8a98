"""The pool: every served model with its workers."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Hashable, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from time import monotonic
from typing import Any, Final, TypeVar

from lmwire import (
    AsyncWorker,
    DeviceMemory,
    LmwireError,
    LocalModel,
    RequestFailed,
    device_memory,
    local_models,
)

from ..errors import ApiError, api_error
from ..settings import Settings
from .downloads import Downloads
from .hidden_paths import PathRedactor
from .managed_model import ManagedModel
from .memory_budget import DeviceGauge, MemoryBudget
from .model_lifecycle import IdleReaper, ModelLifecycle
from .model_resolver import ModelResolver, ModelSpec
from .replica import Replica, make_worker
from .status import (
    Lease,
    LoadedModel,
    LoadProgress,
    ModelStatus,
    ServedModel,
    ShowProgress,
    UnloadedModel,
    log_downloads,
)

T = TypeVar("T")
_log = logging.getLogger("lmwire_http")
_GENERATION_CONFIG: Final = "load.generation_config"
_RETRY_S: Final = 1.0
_MEASURE_S: Final = 30.0
"""Time for a worker to report its memory to a client that loads or unloads the model, in seconds.

A busy machine delays a healthy worker by seconds; only a hung one takes this long.
"""


class Pool:
    """The served models and their workers.

    Args:
        settings: The server's settings.
        listing: Lists the models on this machine.
        measure_device: Measures the memory of this machine's device.
        show_progress: Shows how far loads have come.
        clock: Returns a monotonic time in seconds.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        listing: Callable[..., Sequence[LocalModel]] = local_models,
        measure_device: Callable[[], DeviceMemory] = device_memory,
        show_progress: ShowProgress = log_downloads,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._settings, self._clock, self._show_progress = settings, clock, show_progress
        self._resolver = ModelResolver(settings, listing, clock)
        self.budget: MemoryBudget[ManagedModel] = MemoryBudget(settings.memory_limit)
        self._gauge = None if settings.worker_command else DeviceGauge(measure_device)
        self.lifecycle = ModelLifecycle(self.budget, settings.memory_wait_s, self._gauge)
        self.models: dict[str, ManagedModel] = {}
        self.idle_reaper = IdleReaper(self.models.values, self.lifecycle, self.budget, settings.idle_s, clock)
        self.downloads = Downloads(settings, self._resolver.forget)
        self._limiting: asyncio.Task[None] | None = None
        self._reaping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Find the models that the settings name, and preload them if the settings say so.

        Raises:
            ApiError: A model is not on this machine, cannot be loaded, or does not fit beside the others.
        """
        await self._resolver.start()
        if self._settings.preload:
            await self._preload()
        self._reaping = asyncio.create_task(self.idle_reaper.run())

    async def close(self) -> None:
        """End all workers at once, and return when they have exited."""
        for task in (self._limiting, self._reaping):
            if task:
                task.cancel()
        self._resolver.close()
        await self.downloads.cancel()
        await self.lifecycle.close(list(self.models.values()))

    @asynccontextmanager
    async def lease(
        self,
        name: str,
        *,
        prompt: Sequence[object] = (),
        client: Hashable = None,
        rows: int = 0,
        has_media: bool = False,
    ) -> AsyncGenerator[Lease]:
        """Lease a worker with the model, which stays in memory while the block runs.

        Args:
            name: The model's name in the request.
            prompt: The prompt's parts. Prompts with the same first parts go to the same replica.
            client: The client that sent the request. The queue is fair between clients.
            rows: Number of answers. A request with 0 only needs a prompt: it waits for no answer, and is never refused.
            has_media: Whether the worker must decode images or sounds. It decodes those of few requests at once.

        Raises:
            ApiError: The model does not exist or cannot be loaded now.
        """
        model = self._managed(await self._resolve(name))
        with self._in_use(model, is_limited=rows > 0):
            if rows:
                await self._ensure_loaded(model)
            queue = model.fair_queue if rows else model.prompt_queue
            async with (
                model.media_queue.enter(client, int(has_media)) as decoding,
                queue.enter(client, rows or 1) as queued,
            ):
                replica, worker = await self._choose_replica(model, prompt)
                model.fair_queue.admit_waiting()
                with replica.in_use(), model.paths.redacting(replica.loaded):
                    waited_s = decoding.waited_s + queued.waited_s
                    release = partial(queue.finish, queued)
                    media_decoded = partial(model.media_queue.finish, decoding)
                    yield Lease(worker, replica.loaded, model.spec.id, waited_s, release, media_decoded)

    async def load(self, name: str) -> LoadedModel:
        """Load a model, unless it is in memory, and return when it can serve requests.

        Args:
            name: The model's name in the request.

        Raises:
            ApiError: The model does not exist or cannot be loaded now.
        """
        model = self._managed(await self._resolver.resolve(name))
        started_at = monotonic()
        with self._in_use(model):
            await self._ensure_loaded(model)
            seconds = monotonic() - started_at
            return LoadedModel(self._to_served(model.spec), seconds, await model.memory_bytes(_MEASURE_S))

    async def unload(self, name: str) -> UnloadedModel:
        """Unload a model, and return when its workers have exited. A model that is not in memory stays so.

        Args:
            name: The model's name in the request.

        Raises:
            ApiError: The model does not exist, or requests use it.
        """
        spec = await self._resolver.resolve(name)
        model = self.models.get(spec.id) or self._find_loaded(spec)
        if model is None or not model.has_memory:
            return UnloadedModel(spec.id, 0)
        used = None if model.users else await model.memory_bytes(_MEASURE_S)
        if model.users:
            problem = f"{model.spec.id} has {model.users} requests; try again when they have ended"
            raise ApiError(409, problem, code="model_in_use", param="model", retry_after=_RETRY_S)
        await asyncio.wait([self.lifecycle.unload(model)])  # it goes on if the client disconnects
        return UnloadedModel(model.spec.id, used)

    async def served_models(self) -> list[ServedModel]:
        """Return all models that requests can name: those of the settings in order, then loaded ones, then others.

        Raises:
            ApiError: The models cannot be listed.
        """
        specs = await self._resolver.list_models()
        served = {spec.id: self._to_served(spec) for spec in specs}
        known = {model.loaded.path for model in served.values() if model.loaded}
        for id, model in self.models.items():
            if model.loaded and model.loaded.path not in known:  # downloaded, or named by its path
                served[id] = self._to_served(model.spec)
        names = {name: place for place, name in enumerate(self._settings.models)}
        places = {
            spec.id: min((names[name] for name in (spec.id, *spec.aliases) if name in names), default=len(names))
            for spec in specs
        }
        return sorted(
            served.values(),
            key=lambda model: (places.get(model.id, len(names)), model.loaded is None, model.id.lower()),
        )

    async def served_model(self, name: str) -> ServedModel:
        """Return the model of that name.

        Raises:
            ApiError: No model has that name.
        """
        return self._to_served(await self._resolve(name))

    @property
    def load_progress(self) -> LoadProgress | None:
        """Return how far a load has come; None if no load runs, or none has reported it."""
        loading = (model.load_progress for model in self.models.values() if model.load_task)
        return next(filter(None, loading), None)

    def statuses(self) -> list[ModelStatus]:
        """Return the status of each model that is or was in memory."""
        return [model.status(self.idle_reaper.remaining_s(model)) for model in self.models.values()]

    def set_idle_limit(self, model_id: str, idle_s: float) -> None:
        """Set the time without a request after which a model is unloaded. The limit ends with the next unload.

        Args:
            model_id: The model's id. A model that is not in memory has no limit.
            idle_s: The time in seconds: 0 unloads the model when it is idle, infinity never.
        """
        model = self.models.get(model_id)
        if model and model.has_memory and not model.unload_task:
            model.idle_s = idle_s
            self.idle_reaper.notify()

    async def unload_when_idle(self, name: str) -> None:
        """Unload a model and return when its workers have exited, or after its last request if requests use it.

        Args:
            name: The model's name in the request.

        Raises:
            ApiError: No model has that name.
        """
        spec = await self._resolver.resolve(name)
        model = self.models.get(spec.id) or self._find_loaded(spec)
        if model and model.is_idle:
            await asyncio.wait([self.lifecycle.unload(model)])
        elif model:
            self.set_idle_limit(model.spec.id, 0)

    async def ask_workers(self, question: Callable[[AsyncWorker], Awaitable[T]]) -> dict[str, list[T | None]]:
        """Return the answers of the workers of each model that serves, by its id.

        Args:
            question: Asks a worker. The answer is None if it raises LmwireError, as after its timeout.
        """
        models = [model for model in self.models.values() if model.is_serving]
        answers = await asyncio.gather(*(model.ask_replicas(question) for model in models))
        return {model.spec.id: replies for model, replies in zip(models, answers, strict=True)}

    async def _limit_memory(self, newcomer: ManagedModel) -> None:
        """Before a second model is loaded, limit all models to what one worker may take by default.

        A worker alone keeps to that by itself, so the first load does not wait for the measurement.

        Args:
            newcomer: The model to load.
        """
        if not self._settings.measures_memory or newcomer.has_memory:
            return
        if any(model.has_memory or model.load_task for model in self.models.values() if model is not newcomer):
            self._limiting = self._limiting or asyncio.create_task(self._set_default_limit())
            await asyncio.wait([self._limiting])

    async def _set_default_limit(self) -> None:
        if self._gauge and (memory := await self._gauge.read()):
            self.budget.limit = memory.budget_bytes
            _log.info("all models together may take %s bytes of memory", f"{memory.budget_bytes:,}")
            self.idle_reaper.notify()

    async def _preload(self) -> None:
        """Load the models one by one. Each stays in use until the last is loaded, so that none displaces another."""
        with ExitStack() as all_used:
            for name in self._settings.models:
                model = self._managed(await self._resolver.resolve(name))
                all_used.enter_context(self._in_use(model))
                try:
                    await self._limit_memory(model)
                    await self.lifecycle.ensure_loaded(model, wait=False)
                except (LmwireError, ApiError) as error:
                    raise ApiError(503, f"{name} cannot be loaded: {error}", code="not_loaded") from error

    async def _choose_replica(self, model: ManagedModel, prompt: Sequence[object]) -> tuple[Replica, AsyncWorker]:
        while True:
            await self._ensure_loaded(model)
            if (replica := model.choose_replica(prompt)) and (worker := replica.worker):
                return replica, worker

    async def _ensure_loaded(self, model: ManagedModel) -> None:
        try:
            await self._limit_memory(model)
            with model.paths.redacting(None):
                await self.lifecycle.ensure_loaded(model)
        except LmwireError as error:
            raise self._load_error(model, error) from error

    def _load_error(self, model: ManagedModel, error: LmwireError) -> ApiError:
        """Return the error that a client receives when a model cannot be loaded."""
        load_error = api_error(error)
        if isinstance(error, RequestFailed):
            load_error.param = "model"  # the only field of the request that chooses what is loaded
        if load_error.code == "unsupported":
            load_error.status = 501
        if load_error.code == "model_not_found":  # the listing is outdated, or the name was never valid
            self._resolver.forget()
            self.models.pop(model.spec.id, None)
        return load_error

    async def _resolve(self, name: str) -> ModelSpec:
        chatting = (model for model in self.models.values() if model.loaded and "chat" in model.loaded.capabilities)
        recent = max(chatting, key=lambda model: model.last_used, default=None)
        return await self._resolver.resolve(name, recent.spec if recent else None)

    @contextmanager
    def _in_use(self, model: ManagedModel, *, is_limited: bool = True) -> Generator[None]:
        try:
            with model.in_use(is_limited=is_limited):
                yield
        finally:
            self.budget.notify()
            if model.idle_s is not None:
                self.idle_reaper.notify()

    def _managed(self, spec: ModelSpec) -> ManagedModel:
        return self.models.get(spec.id) or self._find_loaded(spec) or self._add(spec)

    def _find_loaded(self, spec: ModelSpec) -> ManagedModel | None:
        """Return the model that is loaded under another name, such as an alias whose hub id a download revealed."""
        loaded = ((model, model.loaded) for model in self.models.values())
        return next((model for model, done in loaded if done and done.path == spec.path), None)

    def _add(self, spec: ModelSpec) -> ManagedModel:
        self.models[spec.id] = ManagedModel(
            spec,
            self._settings.replicas,
            PathRedactor(spec, self._settings.load_options),
            self._make_worker,
            lambda worker, report: worker.load(spec.path, on_progress=report, **self._load_options(worker)),
            self._show_progress,
            max_requests=self._settings.max_requests,
            step_limit_s=self._settings.step_limit_s,
            clock=self._clock,
        )
        return self.models[spec.id]

    def _load_options(self, worker: AsyncWorker) -> dict[str, Any]:
        options = self._settings.load_options
        if self._settings.generation_config and _GENERATION_CONFIG in worker.hello.features:
            return {**options, "generation_config": True}
        return options

    def _make_worker(self, model: ManagedModel) -> AsyncWorker:
        available = self.budget.available_to(model)
        share = None if available is None else max(1, available // len(model.replicas))
        return make_worker(self._settings, model.spec.id, share)

    def _to_served(self, spec: ModelSpec) -> ServedModel:
        model = self.models.get(spec.id) or self._find_loaded(spec)
        loaded = model.loaded if model else None
        return ServedModel(
            id=spec.id,
            path=spec.path,
            size_bytes=spec.size_bytes,
            context_len=loaded.context_len if loaded else spec.context_len,
            model_type=loaded.model_type if loaded else spec.model_type,
            bits=loaded.quantization.bits if loaded and loaded.quantization else spec.bits,
            kind=spec.kind,
            loaded=loaded,
            load_progress=model.load_progress if model and model.load_task else None,
            state="loaded" if loaded else "loading" if model and model.load_task else "unloaded",
        )
