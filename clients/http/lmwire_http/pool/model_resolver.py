"""From what a client calls a model to what a worker is to load."""

import asyncio
import logging
import os
import re
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final

from lmwire import LmwireError, LocalModel, end_listings, local_models

from ..errors import ApiError
from ..settings import Settings
from .model_spec import Catalogue, Target, not_found, unknown

_FRESH_S: Final = 10.0
"""A listing is made again for a name that is not in it, and for who wants to see it, when it is older."""
_FOLDER: Final = re.compile(r"(?:/|\.{1,2}(?:/|$)|~)")
_FOREIGN_FOLDER: Final = re.compile(r"(?:/|\.{1,2}(?:/|$)|~)|.*(?:/.*/|/\.\.$|\\)", re.DOTALL)
"""A path on whatever machine a worker is. A hub id has one slash."""
_FETCHED: Final = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)?")
"""A hub id or an alias; never a folder in the working directory."""
_FOLDERS: Final = 256
_log = logging.getLogger("lmwire_http")


class Names:
    """What is served.

    Args:
        settings: With names, those are; without, whatever is on this machine.
        listing: Lists the models on this machine, or those in some folders.
        clock: Seconds from any start.
    """

    def __init__(
        self,
        settings: Settings,
        listing: Callable[..., Sequence[LocalModel]] = local_models,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._settings, self._listing, self._clock = settings, listing, clock
        self._catalogue = Catalogue(())
        self._listed_at: float | None = None
        self._unusable = Catalogue(())
        self._listing_now = asyncio.Lock()
        self._folders: dict[str, Target] = {}

    async def start(self) -> None:
        """Finds the models that are named.

        Raises:
            ApiError: one is not here, or cannot run.
        """
        if self._settings.models:
            self._catalogue = Catalogue([await self._named(name) for name in self._settings.models])

    async def find(self, name: str) -> Target:
        """The model that a client means.

        Raises:
            ApiError: there is none, or it is not clear which one is meant.
        """
        if self._settings.models:
            target = self._catalogue.find(name)
        elif self._settings.command:
            target = self._for_foreign_worker(name)
        else:
            target = await self._on_this_machine(name)
        if target is None or target.problem:
            # The reason is for the operator. A client is told the same of every name, whatever is on the disk.
            for unusable in [target] if target else self._unusable.all_of(name):
                _log.warning("the model %s was asked for, and cannot run: %s", unusable.id, unusable.problem)
            raise unknown(name, self._runnable())
        return target

    async def all(self) -> list[Target]:
        """All that there are and can run, by name."""
        if not (self._settings.models or self._settings.command):
            await self._list(older_than=_FRESH_S)
        return self._runnable()

    def close(self) -> None:
        """Ends a listing that still runs."""
        end_listings()

    def forget(self) -> None:
        """What was listed is not true any more."""
        if not self._settings.models:
            self._listed_at = None
            self._catalogue = self._unusable = Catalogue(())
            self._folders.clear()

    def _runnable(self) -> list[Target]:
        return sorted(
            (target for target in self._catalogue if not target.problem), key=lambda target: target.id.lower()
        )

    async def _named(self, name: str) -> Target:
        """What the one who runs the server named, who may have it fetched."""
        folder = os.path.expanduser(name)
        if self._settings.command:
            return Target(id=name, path=name)
        if _FOLDER.match(name) or (os.path.isdir(folder) and not _FETCHED.fullmatch(name)):
            [model] = await self._ask(folder)
            if model.problem:
                raise not_found(f"the model {name} cannot run: {model.problem}")
            return _target(model, id=name)
        await self._list(older_than=_FRESH_S)
        if target := self._catalogue.find(name) or next(iter(self._unusable.all_of(name)), None):
            return Target(
                id=target.id,
                path=target.id if target.problem else target.path,  # what is not whole is fetched again
                names=(*target.names, name),
                size_bytes=target.size_bytes,
                context_len=target.context_len,
            )
        return Target(id=name, path=name)

    def _for_foreign_worker(self, name: str) -> Target | None:
        if not name or (_FOREIGN_FOLDER.match(name) and not self._settings.allow_paths):
            return None
        return Target(id=name, path=name)

    async def _on_this_machine(self, name: str) -> Target | None:
        is_folder = _FOLDER.match(name) is not None
        if is_folder and self._settings.allow_paths:
            folder = _folder(name)
            return None if folder is None else self._catalogue.find(folder) or await self._in(folder)
        target = self._catalogue.find(name)
        if target is None:
            await self._list(older_than=_FRESH_S)
            target = self._catalogue.find(name)
        if self._settings.download and not (target or is_folder) and _FETCHED.fullmatch(name):
            id = next((unusable.id for unusable in self._unusable.all_of(name)), name)
            return Target(id=id, path=id)
        return target

    async def _in(self, folder: str) -> Target:
        if folder not in self._folders:
            [model] = await self._ask(folder)
            if len(self._folders) >= _FOLDERS:
                self._folders.clear()
            self._folders[folder] = _target(model)
        return self._folders[folder]

    async def _list(self, older_than: float) -> None:
        """Lists what is on this machine, unless that was done a moment ago."""
        async with self._listing_now:
            if self._listed_at is None or self._clock() - self._listed_at > older_than:
                paths = bool(self._settings.models) or self._settings.allow_paths
                targets = [_target(model, by_path=paths) for model in await self._ask()]
                self._catalogue = Catalogue(target for target in targets if not target.problem)
                self._unusable = Catalogue(target for target in targets if target.problem)
                self._listed_at = self._clock()

    async def _ask(self, *folders: str) -> Sequence[LocalModel]:
        try:
            return await asyncio.to_thread(self._listing, *folders)
        except LmwireError as error:
            _log.error("%s", error)
            message = "the models on this machine cannot be listed; the server's log says why"
            raise ApiError(500, message, code="internal") from error


def _folder(name: str) -> str | None:
    """The one folder that a path leads to, however it is written; None when it leads to none."""
    try:
        folder = os.path.realpath(os.path.expanduser(name))
    except ValueError:  # no system has such a path
        return None
    return folder if os.path.isdir(folder) else None


def _target(model: LocalModel, id: str | None = None, *, by_path: bool = True) -> Target:
    return Target(
        id=id or model.id,
        path=model.path,
        names=(*model.aliases, model.path) if by_path else tuple(model.aliases),
        size_bytes=model.size_bytes,
        context_len=model.context_len,
        problem=model.problem,
    )
