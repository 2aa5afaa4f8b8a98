"""The parts of a mock worker for a command line. It imports only the parts it needs: tests start many workers."""

from collections.abc import Callable
from dataclasses import dataclass

from ..process.stdio import Pipes
from .model_loader import MockModelLoader


@dataclass
class Plan:
    """The parts of a mock worker: its model loader, and the faults between it and the host."""

    engine: MockModelLoader
    around: Callable[[Pipes], Pipes]
    default_model: str | None = None
    """The model of a load that names none."""


def plan(arguments: list[str]) -> Plan:
    """Parse the arguments of `lmwire mock`, and install the faults of the process. Exits on wrong usage."""
    if not arguments:
        return Plan(MockModelLoader(), lambda io: io)
    from .command import parse
    from .scenario import Script

    rules, faults, model = parse(arguments)
    if not faults:
        return Plan(MockModelLoader(Script(rules)), lambda io: io, model)
    from .faults import FaultyPipes, install_process_faults, rules_of

    install_process_faults(faults)
    return Plan(MockModelLoader(Script([*rules_of(faults), *rules])), lambda io: FaultyPipes(io, faults), model)
