"""What a command line makes of the mock worker. Only what it asks for is imported: tests start many workers."""

from collections.abc import Callable
from dataclasses import dataclass

from ..process.stdio import Pipes
from .model_loader import MockModelLoader


@dataclass
class Plan:
    """A mock worker to be: its engine, and what stands between it and the host."""

    engine: MockModelLoader
    around: Callable[[Pipes], Pipes]


def plan(arguments: list[str]) -> Plan:
    """Reads what follows `lmwire mock`, and shows the faults that cannot wait for pipes. Exits on wrong usage."""
    if not arguments:
        return Plan(MockModelLoader(), lambda io: io)
    from .command import parse
    from .scenario import Script

    rules, faults = parse(arguments)
    if not faults:
        return Plan(MockModelLoader(Script(rules)), lambda io: io)
    from .faults import FaultyPipes, afflict, rules_of

    afflict(faults)
    return Plan(MockModelLoader(Script([*rules_of(faults), *rules])), lambda io: FaultyPipes(io, faults))
