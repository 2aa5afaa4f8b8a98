"""Where cases are gathered: functions that context, each with a name and the rules that it proves."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from ..context import CaseContext

CaseFunction = Callable[[CaseContext], None]


class HostCase(NamedTuple):
    """A case as it is defined.

    Args:
        name: unique and stable, `group.name` or `group.name:variant`.
        rules: the rules of PROTOCOL.md that it proves.
        act: plays it; raises Failure.
    """

    name: str
    rules: tuple[str, ...]
    run: CaseFunction

    @property
    def group(self) -> str:
        """The first part of its name: the module that it stands in."""
        return self.name.partition(".")[0]

    @property
    def selectors(self) -> tuple[str, ...]:
        """What it can be chosen by: its name, with and without the variant, its group, its rules."""
        return self.name, self.name.partition(":")[0], self.group, *self.rules


CASES: Final[list[HostCase]] = []
"""Every case, in the order in which they are played."""


def case(*rules: str) -> Callable[[CaseFunction], CaseFunction]:
    """Registers a case under its module's and its function's name."""

    def register(act: CaseFunction) -> CaseFunction:
        CASES.append(HostCase(_name(act), rules, act))
        return act

    return register


def variants(values: Mapping[str, Any], *rules: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers a case for each value, which it takes as its second argument."""

    def register(act: Callable[..., None]) -> Callable[..., None]:
        for variant, value in values.items():
            CASES.append(HostCase(f"{_name(act)}:{variant}", rules, partial(_act, act, value)))
        return act

    return register


def _act(act: Callable[..., None], value: Any, context: CaseContext) -> None:
    act(context, value)


def _name(act: Callable[..., None]) -> str:
    group = act.__module__.rpartition(".")[2]
    return f"{group}.{act.__name__}".replace("_", "-")
