"""The models that can be loaded, and the resolution of the names in requests to them."""

import asyncio
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Final, TypeVar

from lmwire import LmwireError, LocalModel, ModelKind, NameProblem, end_listings, find_name_problems, local_models
from lmwire_protocol.model_names import NameIndex, ambiguous_name

from ..errors import ApiError, invalid_field
from ..settings import Settings
from .hidden_paths import hide_paths

_MAX_NAMES_SHOWN = 20
"""Number of model names in an error message."""
T = TypeVar("T")
_LISTING_TTL_S: Final = 10.0
"""Age of a listing, in seconds, after which an unknown name or a request for the list renews it."""
_FOLDER: Final = re.compile(r"(?:/|\.{1,2}(?:/|$)|~)")
_REMOTE_FOLDER: Final = re.compile(r"(?:/|\.{1,2}(?:/|$)|~)|.*(?:/.*/|/\.\.$|\\)", re.DOTALL)
"""A path on the worker's machine, which may be another one. A hub id has exactly one slash."""
DOWNLOADABLE: Final = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)?")
"""A hub id or an alias; never a folder in the working directory."""
_DEFAULT_NAMES: Final = frozenset({"", "default", "default_model", "chat_model"})
"""Names for the only model that is served. mlx_lm.server's clients use the last two."""
_CLAUDE: Final = re.compile(r"claude-", re.IGNORECASE)
"""Names of Anthropic's models. Claude Code uses several of them, and its user chooses none."""
_MAX_FOLDERS: Final = 256
_log = logging.getLogger("lmwire_http")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model that a worker can load."""

    id: str
    """The model's name in listings, logs and metrics."""
    path: str
    """The folder or name that the worker loads."""
    aliases: tuple[str, ...] = ()
    """Further names of the model."""
    size_bytes: int = 0
    """Total size of the model files, in bytes; 0 if unknown."""
    load_bytes: int = 0
    """Estimated memory of a load in one worker, in bytes; 0 if unknown."""
    context_len: int | None = None
    """Context length in tokens; None if unknown."""
    model_type: str | None = None
    """The architecture's name in config.json; None if unknown."""
    bits: int | None = None
    """Bits of a quantized weight; None if unknown."""
    kind: ModelKind | None = None
    """The model's kind; None if unknown."""
    problem: str | None = None
    """Why the model cannot run; None if it can, or if that is unknown."""

    @property
    def min_load_bytes(self) -> int:
        """Memory without which no load succeeds, in bytes; 0 if unknown. A folder may have files that no load reads."""
        return min(self.size_bytes, self.load_bytes or self.size_bytes)

    @property
    def base_name(self) -> str:
        """The last part of the id."""
        return self.id.rstrip("/").rpartition("/")[2]


class ModelCatalog:
    """Models by name; see `lmwire_protocol.model_names`."""

    def __init__(self, specs: Iterable[ModelSpec]) -> None:
        self._specs = {spec.id: spec for spec in specs}
        self._index: NameIndex[ModelSpec] = NameIndex()
        for spec in self._specs.values():
            self._index.add(spec.id, spec.aliases, spec)

    def __iter__(self) -> Iterator[ModelSpec]:
        return iter(self._specs.values())

    def find(self, name: str) -> ModelSpec | None:
        """Return the model of that name; None if there is none.

        Raises:
            ApiError: Several models have that name.
        """
        specs = self.find_all(name)
        return _only(name, specs) if specs else None

    def find_all(self, name: str) -> list[ModelSpec]:
        """Return the models that match a name."""
        return self._index.find_all(name)


def model_not_found(message: str) -> ApiError:
    """Return the error for a model that cannot be loaded."""
    return ApiError(404, message, code="model_not_found", param="model")


def _listed(known: Iterable[ModelSpec]) -> str:
    ids = [spec.id for spec in known]
    more = f" and {len(ids) - _MAX_NAMES_SHOWN} more" if len(ids) > _MAX_NAMES_SHOWN else ""
    return f"there are {', '.join(ids[:_MAX_NAMES_SHOWN])}{more}" if ids else "there is none"


def _only(name: str, specs: list[ModelSpec]) -> ModelSpec:
    if len(specs) > 1:
        raise model_not_found(ambiguous_name(name, [spec.id for spec in specs]))
    return specs[0]


class ModelResolver:
    """The served models, by name.

    Args:
        settings: The server's settings. They name the served models, or allow all on this machine.
        listing: Lists the models on this machine, or those in some folders.
        clock: Returns a monotonic time in seconds.
        check_names: Returns which names of models that are not on this machine no load can find.
    """

    def __init__(
        self,
        settings: Settings,
        listing: Callable[..., Sequence[LocalModel]] = local_models,
        clock: Callable[[], float] = monotonic,
        check_names: Callable[..., Sequence[NameProblem]] = find_name_problems,
    ) -> None:
        trusts_code = settings.load_options.get("trust_remote_code")
        self._listing = partial(listing, trust_remote_code=True) if trusts_code else listing
        self._settings, self._clock, self._check_names = settings, clock, check_names
        self._named = ModelCatalog(())
        self._catalogue = ModelCatalog(())
        self._listed_at: float | None = None
        self._unusable = ModelCatalog(())
        self._refresh_lock = asyncio.Lock()
        self._folders: dict[str, ModelSpec] = {}

    async def start(self) -> None:
        """Find the models that the settings name.

        Raises:
            ApiError: A model cannot run, or is neither on this machine nor on the hub.
        """
        if self._settings.models:
            specs = [await self._resolve_configured(name) for name in self._settings.models]
            self._named = ModelCatalog(_with_base_names(specs))

    async def resolve(self, name: str, recent: ModelSpec | None = None) -> ModelSpec:
        """Return the model that a client names.

        Args:
            name: The name. If it is empty, or a stand-in such as `default_model`, it stands for the only model of the
                settings, or for the only one on this machine. If it is that of a Claude model and no model here has
                it, it stands for the first one of the settings, for the only one, or for the recent one.
            recent: The model that conversations have used last.

        Raises:
            ApiError: No model has that name, or several have it.
        """
        spec = self._named.find(name)
        if spec is None and self._settings.serves_others:
            if self._settings.worker_command:
                spec = self._resolve_for_custom_worker(name)
            else:
                spec = await self._resolve_local(name)
        if spec is None and (name in _DEFAULT_NAMES or self._settings.any_model_name):
            spec = await self._only_model()
        if spec is None and _CLAUDE.match(name):
            spec = await self._model_for_claude(recent)
        if spec is None or spec.problem:
            unusable = [spec] if spec else self._unusable.find_all(name) if self._settings.serves_others else []
            for model in unusable:
                _log.warning("a request named the model %s, which cannot run: %s", model.id, model.problem)
            if len(unusable) == 1 and unusable[0].kind:  # its files are whole
                problem = f"the model {name[:200]!r} cannot be loaded here: {unusable[0].problem}"
                raise ApiError(501, problem, code="unsupported", param="model")
            if len(unusable) == 1 and unusable[0].model_type:  # files are missing or damaged
                problem = hide_paths(unusable[0].problem or "")
                raise model_not_found(f"the model {name[:200]!r} cannot be loaded here: {problem}")
            # Otherwise only the log gives the reason: the error must not reveal which files exist on this machine.
            known = _listed(self._runnable())
            if not name:
                problem = f"model is required, since not exactly one model is served here; {known}"
                raise invalid_field(problem, "model")
            raise model_not_found(f"the model {name[:200]!r} is not served here; {known}")
        return spec

    async def list_models(self) -> list[ModelSpec]:
        """Return all models that can run, sorted by name."""
        if self._settings.serves_others and not self._settings.worker_command:
            await self._refresh(older_than=_LISTING_TTL_S)
        return self._runnable()

    def close(self) -> None:
        """End a listing that still runs."""
        end_listings()

    def forget(self) -> None:
        """Discard the listing, which has turned out to be outdated."""
        self._listed_at = None
        self._catalogue = self._unusable = ModelCatalog(())
        self._folders.clear()

    async def _only_model(self) -> ModelSpec | None:
        models = list(self._named) or await self.list_models()
        return models[0] if len(models) == 1 else None

    async def _model_for_claude(self, recent: ModelSpec | None) -> ModelSpec | None:
        if self._settings.models:
            return self._named.find(self._settings.models[0])
        return await self._only_model() or recent

    def _runnable(self) -> list[ModelSpec]:
        """Return the models that requests can name and that can run, sorted by name."""
        specs = {spec.path: spec for spec in self._catalogue if not spec.problem and self._settings.serves_others}
        specs |= {spec.path: spec for spec in self._named}
        return sorted(specs.values(), key=lambda spec: spec.id.lower())

    async def _resolve_configured(self, name: str) -> ModelSpec:
        """Return the model for a name from the settings. The operator may name a model to download."""
        folder = os.path.expanduser(name)
        if self._settings.worker_command:
            return ModelSpec(id=name, path=name)
        if _FOLDER.match(name) or (os.path.isdir(folder) and not DOWNLOADABLE.fullmatch(name)):
            [model] = await self._list_folders(folder)
            if model.problem:
                raise model_not_found(f"the model {name} cannot run: {model.problem}")
            return _to_spec(model, id=name)
        await self._refresh(older_than=_LISTING_TTL_S)
        if spec := self._catalogue.find(name) or next(iter(self._unusable.find_all(name)), None):
            path = spec.id if spec.problem else spec.path  # an incomplete model is downloaded again
            return replace(spec, path=path, aliases=(*spec.aliases, name), problem=None)
        await self._check_downloadable(name)
        return ModelSpec(id=name, path=name)

    async def _check_downloadable(self, name: str) -> None:
        """Check that a load can download a model. If the hub cannot be asked now, only log it.

        Raises:
            ApiError: No load can find the model. The message has similar names.
        """
        for found in await self._ask_program(self._check_names, name):
            if not found.retryable:
                raise model_not_found(found.problem)
            _log.warning("%s cannot be checked: %s", name, found.problem)

    def _resolve_for_custom_worker(self, name: str) -> ModelSpec | None:
        if not name or (_REMOTE_FOLDER.match(name) and not self._settings.allow_paths):
            return None
        return ModelSpec(id=name, path=name)

    async def _resolve_local(self, name: str) -> ModelSpec | None:
        is_folder = _FOLDER.match(name) is not None
        if is_folder and self._settings.allow_paths:
            folder = _real_folder(name)
            return None if folder is None else self._catalogue.find(folder) or await self._in_folder(folder)
        spec = self._catalogue.find(name)
        if spec is None:
            await self._refresh(older_than=_LISTING_TTL_S)
            spec = self._catalogue.find(name)
        may_download = self._settings.download and not (spec or is_folder or _CLAUDE.match(name))
        if may_download and DOWNLOADABLE.fullmatch(name):
            id = next((unusable.id for unusable in self._unusable.find_all(name)), name)
            return ModelSpec(id=id, path=id)
        return spec

    async def _in_folder(self, folder: str) -> ModelSpec:
        if folder not in self._folders:
            [model] = await self._list_folders(folder)
            if len(self._folders) >= _MAX_FOLDERS:
                self._folders.clear()
            self._folders[folder] = _to_spec(model)
        return self._folders[folder]

    async def _refresh(self, older_than: float) -> None:
        """List the models on this machine, unless the last listing is recent.

        Args:
            older_than: Age of a recent listing, in seconds.
        """
        async with self._refresh_lock:
            if self._listed_at is None or self._clock() - self._listed_at > older_than:
                paths = not self._settings.serves_others or self._settings.allow_paths
                specs = [_to_spec(model, by_path=paths) for model in await self._list_folders()]
                self._catalogue = ModelCatalog(spec for spec in specs if not spec.problem)
                self._unusable = ModelCatalog(spec for spec in specs if spec.problem)
                self._listed_at = self._clock()

    async def _list_folders(self, *folders: str) -> Sequence[LocalModel]:
        return await self._ask_program(self._listing, *folders)

    async def _ask_program(self, ask: Callable[..., T], *names: str) -> T:
        """Return what a program of the worker's reports.

        Args:
            ask: Runs the program.
            names: Folders or names of models.
        """
        try:
            return await asyncio.to_thread(ask, *names)
        except LmwireError as error:
            _log.error("%s", error)
            message = "the models on this machine cannot be listed; see the server's log"
            raise ApiError(500, message, code="internal") from error


def _real_folder(name: str) -> str | None:
    """Return the canonical path of a folder; None if the name leads to no folder."""
    try:
        folder = os.path.realpath(os.path.expanduser(name))
    except ValueError:  # such as a null byte in the path
        return None
    return folder if os.path.isdir(folder) else None


def _with_base_names(specs: Sequence[ModelSpec]) -> list[ModelSpec]:
    """Return the models with a folder's last part as its id: clients must not learn where it is.

    Folders with the same last part keep their paths as ids.
    """
    counts = Counter(spec.base_name for spec in specs)
    return [
        replace(spec, id=spec.base_name, aliases=(*spec.aliases, spec.id))
        if _REMOTE_FOLDER.match(spec.id) and counts[spec.base_name] == 1 and spec.base_name.strip(".~")
        else spec
        for spec in specs
    ]


def _to_spec(model: LocalModel, id: str | None = None, *, by_path: bool = True) -> ModelSpec:
    return ModelSpec(
        id=id or model.id,
        path=model.path,
        aliases=(*model.aliases, model.path) if by_path else tuple(model.aliases),
        size_bytes=model.size_bytes,
        load_bytes=model.load_bytes,
        context_len=model.context_len,
        model_type=model.model_type,
        bits=model.bits,
        kind=model.kind,
        problem=model.problem,
    )
