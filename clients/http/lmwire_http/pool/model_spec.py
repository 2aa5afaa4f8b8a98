"""Models that can be loaded, and the names that find them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lmwire import ModelKind
from lmwire_protocol.model_names import NameIndex, ambiguous_name

from ..errors import ApiError, invalid_field

_MAX_NAMES_SHOWN = 20
"""Number of model names in an error message."""


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


def unknown_model(name: str, known: Iterable[ModelSpec]) -> ApiError:
    """Return the error for a name that no served model has.

    Args:
        name: The name in the request.
        known: The served models, which the message lists.
    """
    return model_not_found(f"the model {name[:200]!r} is not served here; {_listed(known)}")


def missing_model(known: Iterable[ModelSpec]) -> ApiError:
    """Return the error for a request without a model's name, where not exactly one model is served.

    Args:
        known: The served models, which the message lists.
    """
    return invalid_field(f"model: is required, since not exactly one model is served here; {_listed(known)}", "model")


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
