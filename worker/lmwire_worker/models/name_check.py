"""Check names of models that are not on this machine: `python -P -m lmwire_worker.models.name_check NAME…`.

The program prints a JSON array with an object for each name that no load can find. It asks the hub and fetches nothing.
"""

import difflib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from lmwire_protocol import RequestError
from lmwire_protocol.model_names import PACKAGE_MODELS, is_package_model

from .hub.cache import hub_cache
from .package_models import explain_package_absence
from .resolve import ALIASES, BUILTIN, BUILTIN_PREFIX, HUB_ID

_SUGGESTIONS: Final = 3


@dataclass(frozen=True)
class NameProblem:
    """A name that no load can find."""

    name: str
    problem: str
    """A sentence with the reason and with similar names."""
    retryable: bool
    """True if the hub could not be asked, so that a later load may find the model."""


def find_problems(names: Sequence[str]) -> list[NameProblem]:
    """Return the names that no load can find, with the reasons."""
    problems = ((name, _find_problem(name)) for name in names)
    return [NameProblem(name, _suggest(name, found), found.retryable) for name, found in problems if found]


def _find_problem(name: str) -> RequestError | None:
    if is_package_model(name):
        return explain_package_absence(name)
    hub_id = ALIASES.get(name.lower(), name)
    if not HUB_ID.fullmatch(hub_id):
        return RequestError("model_not_found", f"{name[:200]!r} is not a hub id as owner/name, an alias or a folder")
    from .hub.snapshot import explain_absence

    return explain_absence(hub_id)


def _suggest(name: str, problem: RequestError) -> str:
    known = {known.rpartition("/")[2].lower() if "/" not in name else known.lower(): known for known in _known_names()}
    near = [] if name.lower() in known else difflib.get_close_matches(name.lower(), known, n=_SUGGESTIONS, cutoff=0.6)
    here = f"; for the folder of this name, in the current directory, write ./{name}" if os.path.isdir(name) else ""
    meant = f"; did you mean {' or '.join(known[each] for each in near)}?" if near else ""
    return f"{problem.message}{here}{meant}"


def _known_names() -> Iterator[str]:
    """Yield the names of the models on this machine, the aliases and the models that they stand for."""
    yield from (BUILTIN_PREFIX + folder.name for folder in sorted(BUILTIN.iterdir()))
    yield from ALIASES.values()
    yield from ALIASES
    yield from PACKAGE_MODELS
    for repository in Path(hub_cache()).glob("models--*"):
        yield repository.name.removeprefix("models--").replace("--", "/")


if __name__ == "__main__":
    print(json.dumps([asdict(problem) for problem in find_problems(sys.argv[1:])]))
