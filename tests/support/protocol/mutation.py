"""Programs that are broken on purpose, each in one way, and the rule and the transcript or case that catch each."""

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
    """Return a decorator that makes a mutant of a mutation."""
    return partial(Mutant, breaks, caught_by)


def mutants(*families: ModuleType) -> dict[str, Mutant]:
    """Return the mutants in some modules, by name."""
    return {name: found for family in families for name, found in vars(family).items() if isinstance(found, Mutant)}


def replace(owner: Any, name: str, instead: object) -> None:
    """Replace an attribute by an object of any type."""
    setattr(owner, name, instead)


def wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Wrap a function in another, which receives it as its first argument."""
    original = getattr(owner, name)
    setattr(owner, name, lambda *arguments, **options: around(original, *arguments, **options))


def every(count: int, owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Wrap a function as `wrap` does, but only every `count`-th call of it."""
    calls = itertools.count(1)
    original = getattr(owner, name)

    def called(*arguments: Any, **options: Any) -> Any:
        if next(calls) % count:
            return original(*arguments, **options)
        return around(original, *arguments, **options)

    setattr(owner, name, called)
