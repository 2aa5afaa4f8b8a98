"""Names of models: the rules by which a name finds a model, on the pipe and over HTTP."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeVar

Model = TypeVar("Model")

PACKAGE_MODELS: Final = frozenset({"all-minilm", "smollm2"})
"""Models from Python packages, in lower case."""


def is_package_model(name: str) -> bool:
    """Return whether a name is that of a model from a Python package, for machines without a model hub."""
    return name.lower() in PACKAGE_MODELS


class NameIndex(Generic[Model]):
    """Models by name. An exact id wins over an id or alias in another case, which wins over the last part of an id."""

    def __init__(self) -> None:
        self._by_id: dict[str, Model] = {}
        self._by_name: defaultdict[str, list[Model]] = defaultdict(list)
        self._by_last_part: defaultdict[str, list[Model]] = defaultdict(list)

    def add(self, id: str, aliases: Iterable[str], model: Model) -> None:
        """Add a model.

        Args:
            id: The model's id, such as `owner/name` or a folder. No other model has it.
            aliases: Further names.
            model: The model.
        """
        self._by_id[id] = model
        for name in {name.lower() for name in (id, *aliases)}:
            self._by_name[name].append(model)
        self._by_last_part[id.rstrip("/").rpartition("/")[2].lower()].append(model)

    def find_all(self, name: str) -> list[Model]:
        """Return the models that a name fits: none, one, or several if it is ambiguous."""
        if name in self._by_id:
            return [self._by_id[name]]
        return self._by_name.get(name.lower()) or self._by_last_part.get(name.lower()) or []


def ambiguous_name(name: str, ids: Sequence[str]) -> str:
    """Return the sentence about a name that fits several models.

    Args:
        name: The name.
        ids: The ids of the models that it fits.
    """
    return f"the name {name[:200]!r} fits {' and '.join(ids)}; write it whole"
