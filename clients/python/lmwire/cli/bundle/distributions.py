"""The installed packages that a bundle needs: those of lmwire's extras, and what they require in turn."""

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Final

from packaging.requirements import Requirement

from lmwire_protocol.extras import not_installed

from ..errors import USAGE, CliError

_DEVELOPMENT: Final = frozenset({"bundle", "dev", "docs"})
"""Extras that no worker uses."""
_UNUSED: Final = frozenset({"datasets"})
"""Requirements that are left out with what they alone require. `datasets` reads data to train with: 230 MB."""


def required_distributions(extras: Iterable[str]) -> list[Distribution]:
    """Return lmwire's distribution and all that it requires with some extras, sorted by name.

    Args:
        extras: Extras of lmwire.

    Raises:
        CliError: An extra is unknown, or a package is not installed.
    """
    lmwire = distribution("lmwire")
    known = sorted(set(lmwire.metadata.get_all("Provides-Extra") or []) - _DEVELOPMENT)
    found: dict[str, Distribution] = {}
    for extra in extras:
        if extra not in known:
            raise CliError(f"--extra {extra} is unknown; name one of {', '.join(known)}", USAGE)
        _collect(lmwire, frozenset({extra}), extra, found, set())
    return [found[name] for name in sorted(found)]


def default_extras(extras: Iterable[str]) -> list[str]:
    """Return extras, sorted, with the one that this machine's worker needs."""
    chosen = set(extras)
    if not chosen & {"cpu", "cuda", "worker"}:
        chosen.add("worker" if sys.platform == "darwin" else "cpu")
    return sorted(chosen)


def canonical_name(name: str) -> str:
    """Return a distribution's name as all indexes normalize it.

    Source: https://packaging.python.org/en/latest/specifications/name-normalization/
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _collect(
    parent: Distribution,
    extras: frozenset[str],
    lmwire_extra: str,
    found: dict[str, Distribution],
    seen: set[tuple[str, frozenset[str]]],
) -> None:
    """Add a distribution and what it requires to those found.

    Args:
        parent: The distribution.
        extras: Its extras that are asked for.
        lmwire_extra: The extra of lmwire that leads to it.
        found: Distributions by their canonical names.
        seen: Names and extras that need no second visit.
    """
    name = canonical_name(parent.name)
    found[name] = parent
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    for requirement in _active_requirements(parent, extras):
        try:
            child = distribution(requirement.name)
        except PackageNotFoundError:
            raise CliError(f"--extra {lmwire_extra}: {not_installed(requirement.name, lmwire_extra)}") from None
        _collect(child, frozenset(requirement.extras), lmwire_extra, found, seen)


def _active_requirements(parent: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    """Yield what a distribution requires on this machine with some extras."""
    for requirement in map(Requirement, parent.requires or []):
        marker = requirement.marker
        active = marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))
        if active and canonical_name(requirement.name) not in _UNUSED:
            yield requirement
