"""Programs that are broken on purpose, in one way each, and what must catch them."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Mutant:
    """A program with one thing replaced.

    Args:
        breaks: the rule that the report must name as broken.
        caught_by: the transcript, or the case, that is played.
        mutate: replaces the one thing.
    """

    breaks: str
    caught_by: str
    mutate: Callable[[], None]


def mutant(breaks: str, caught_by: str) -> Callable[[Callable[[], None]], Mutant]:
    """Makes a mutant of a mutation."""
    return partial(Mutant, breaks, caught_by)


def mutants(*families: ModuleType) -> dict[str, Mutant]:
    """The mutants of some modules, by name."""
    return {name: found for family in families for name, found in vars(family).items() if isinstance(found, Mutant)}


def replace(owner: Any, name: str, instead: object) -> None:
    """Puts something in the place of what has another type."""
    setattr(owner, name, instead)


def wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Puts a function around another, which it gets as its first argument."""
    original = getattr(owner, name)
    setattr(owner, name, lambda *arguments, **options: around(original, *arguments, **options))


def every(count: int, owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Puts a function around another, but only for one call in so many."""
    calls = itertools.count(1)
    original = getattr(owner, name)

    def called(*arguments: Any, **options: Any) -> Any:
        if next(calls) % count:
            return original(*arguments, **options)
        return around(original, *arguments, **options)

    setattr(owner, name, called)
