"""A model that can be loaded, and how it is found by the names that clients have for it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..errors import ApiError

_SHOWN = 20
"""Names in an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a worker is to load."""

    id: str
    """What the model is called here, in listings, logs and metrics."""
    path: str
    """What the worker is told to load."""
    names: tuple[str, ...] = ()
    """What else it is called."""
    size_bytes: int = 0
    """Of its files; 0 when that is not known."""
    context_len: int | None = None
    problem: str | None = None
    """Why it cannot run, when that is known."""

    @property
    def short(self) -> str:
        """The last part of its name."""
        return self.id.rstrip("/").rpartition("/")[2]


class Catalogue:
    """Models by their names: the same letters first, then any case, then the last part alone."""

    def __init__(self, targets: Iterable[Target]) -> None:
        self._targets = {target.id: target for target in targets}
        self._full: defaultdict[str, list[Target]] = defaultdict(list)
        self._short: defaultdict[str, list[Target]] = defaultdict(list)
        for target in self._targets.values():
            for name in {name.lower() for name in (target.id, *target.names)}:
                self._full[name].append(target)
            self._short[target.short.lower()].append(target)

    def __iter__(self) -> Iterator[Target]:
        return iter(self._targets.values())

    def find(self, name: str) -> Target | None:
        """The model of that name; None when there is none.

        Raises:
            ApiError: there are several.
        """
        targets = self.all_of(name)
        return _only(name, targets) if targets else None

    def all_of(self, name: str) -> list[Target]:
        """Return the models that a name fits."""
        if target := self._targets.get(name):
            return [target]
        return self._full.get(name.lower()) or self._short.get(name.lower()) or []


def unknown(name: str, known: Iterable[Target]) -> ApiError:
    """There is no such model."""
    ids = [target.id for target in known]
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    there = f"there are {', '.join(ids[:_SHOWN])}{more}" if ids else "there is none"
    return not_found(f"the model {name[:200]!r} is not served here; {there}")


def not_found(message: str) -> ApiError:
    """A model that cannot be had."""
    return ApiError(404, message, code="model_not_found", param="model")


def _only(name: str, targets: list[Target]) -> Target:
    if len(targets) > 1:
        raise not_found(f"the name {name[:200]!r} fits {' and '.join(target.id for target in targets)}; write it whole")
    return targets[0]
