"""The faults that are scripted replies: rules before all others."""

from collections.abc import Callable, Iterable
from typing import Final

from ..catalogue import Chosen
from ..replies import Failure, Reply, Stage
from ..scenario import Match, Rule


def rules_of(faults: Iterable[Chosen]) -> list[Rule]:
    """Return the rules of the chosen faults that have one."""
    return [RULES[name](**parameters) for name, parameters in faults if name in RULES]


def _slow_load(seconds: int) -> Rule:
    stages = [Stage(stage="read", current=n, total=10, unit="steps", delay_ms=seconds * 100) for n in range(10)]
    return Rule(Reply(progress=stages), Match(cmd="load"))


def _failed_load(code: str) -> Rule:
    return Rule(Reply(error=Failure(code, "the model is broken on purpose")), Match(cmd="load"))


def _burst(tokens: int) -> Rule:
    return Rule(Reply(text="x " * tokens))


def _stall(after: int) -> Rule:
    return Rule(Reply(text="".join(f"{n} " for n in range(1, after + 1)), then="hang"))


RULES: Final[dict[str, Callable[..., Rule]]] = {
    "slow-load": _slow_load,
    "failed-load": _failed_load,
    "burst": _burst,
    "stall": _stall,
}
