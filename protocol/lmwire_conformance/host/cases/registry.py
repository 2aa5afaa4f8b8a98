"""The list of all cases: functions with a name and the rules that they prove."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from ..context import CaseContext

CaseFunction = Callable[[CaseContext], None]


class HostCase(NamedTuple):
    """The definition of a case.

    Args:
        name: Unique and stable: `group.name` or `group.name:variant`.
        rules: The rules of PROTOCOL.md that it proves.
        run: Plays the case, and raises CaseFailure if the host fails it.
    """

    name: str
    rules: tuple[str, ...]
    run: CaseFunction

    @property
    def group(self) -> str:
        """Return the first part of the name, which is that of its module."""
        return self.name.partition(".")[0]

    @property
    def selectors(self) -> tuple[str, ...]:
        """Return the names that choose this case: its own with and without the variant, its group, and its rules."""
        return self.name, self.name.partition(":")[0], self.group, *self.rules


CASES: Final[list[HostCase]] = []
"""Every case, in the order of play."""


def case(*rules: str) -> Callable[[CaseFunction], CaseFunction]:
    """Register a function as a case, named after its module and itself."""

    def register(function: CaseFunction) -> CaseFunction:
        CASES.append(HostCase(_name(function), rules, function))
        return function

    return register


def variants(values: Mapping[str, Any], *rules: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a case for each value, its second argument.

    Args:
        values: The values by the name of the variant.
        rules: The rules that the cases prove.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        for variant, value in values.items():
            CASES.append(HostCase(f"{_name(function)}:{variant}", rules, partial(_call, function, value)))
        return function

    return register


def _call(function: Callable[..., None], value: Any, context: CaseContext) -> None:
    function(context, value)


def _name(function: Callable[..., None]) -> str:
    return f"{group_name(function.__module__)}.{function.__name__.replace('_', '-')}"


def group_name(module: str) -> str:
    """Return the name of the group of cases that a module holds."""
    return module.rpartition(".")[2].replace("_", "-")
