"""The Python client passes every case, with threads and with asyncio, and nothing is known to fail."""

import sys
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from lmwire_conformance.host import CASES, check_host
from lmwire_conformance.report import CaseResult
from support.nightly import asked_for, nightly_but
from support.protocol.mutant_host import DRIVER

DRIVERS = {"threads": [], "asyncio": ["--asyncio"]}
NAMES = [case.name for case in CASES]
LINES = [case.name for case in CASES if case.group == "lines"]
"""Cases for the night: tests/protocol/test_vectors_for_hosts.py plays the same lines without a process."""
VARIANTS: dict[str, list[str]] = {}
"""The names of each case's variants, by what they have in common."""
for case in CASES:
    VARIANTS.setdefault(case.name.partition(":")[0], []).append(case.name)
SAMPLE = {
    name
    for group, names in VARIANTS.items()
    for name in (names if group.startswith("commands.") else (names[0], names[-1]))
    if name not in LINES
}
"""Cases for each commit: the first and the last variant of each, and every command that the client writes."""
OF_A_TRANSPORT = [case.name for case in CASES if case.group in ("startup", "cancellation", "shutdown")]
"""Cases for each commit with asyncio: those about its own code. The others test what both clients share."""
SECONDS = 120.0
"""Maximum time of a wait. A case that passes waits for events, so it takes no longer on a busy machine."""

pytestmark = pytest.mark.slow
Played = dict[tuple[str, str], Future[dict[str, CaseResult]]]


@pytest.fixture(scope="module")
def played(pool: ThreadPoolExecutor, request: pytest.FixtureRequest) -> Played:
    groups: dict[tuple[str, str], list[str]] = {}
    for driver, name in asked_for(request, "driver", "name"):
        groups.setdefault((driver, name.partition(".")[0]), []).append(name)
    return {group: pool.submit(play, group[0], names) for group, names in groups.items()}


def play(driver: str, names: list[str]) -> dict[str, CaseResult]:
    results = check_host([sys.executable, str(DRIVER), *DRIVERS[driver]], only=names, seconds=SECONDS)
    return {result.name: result for result in results}


@pytest.mark.parametrize("name", nightly_but(SAMPLE, NAMES))
@pytest.mark.parametrize("driver", ["threads"])
def test_the_client_passes(played: Played, driver: str, name: str) -> None:
    check(played, driver, name)


@pytest.mark.parametrize("name", nightly_but(OF_A_TRANSPORT, NAMES))
@pytest.mark.parametrize("driver", ["asyncio"])
def test_the_client_for_asyncio_passes(played: Played, driver: str, name: str) -> None:
    check(played, driver, name)


def check(played: Played, driver: str, name: str) -> None:
    case = played[driver, name.partition(".")[0]].result()[name]
    assert case.outcome == "pass", f"expected: {case.expected}\nseen: {case.seen}"
