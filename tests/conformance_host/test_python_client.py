"""The Python client passes every case, with threads and with asyncio, and nothing is known to fail."""

import sys
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from lmwire_conformance.host import CASES, check_host
from lmwire_conformance.report import CaseResult
from support.protocol.mutant_host import DRIVER

DRIVERS = {"threads": [], "asyncio": ["--asyncio"]}
GROUPS = list(dict.fromkeys(case.group for case in CASES))
SECONDS = 120.0
"""Maximum time of a wait. A case that passes waits for events, so it takes no longer on a busy machine."""

Played = dict[tuple[str, str], Future[dict[str, CaseResult]]]


@pytest.fixture(scope="module")
def played(pool: ThreadPoolExecutor) -> Played:
    return {(driver, group): pool.submit(play, driver, group) for driver in DRIVERS for group in GROUPS}


def play(driver: str, group: str) -> dict[str, CaseResult]:
    results = check_host([sys.executable, str(DRIVER), *DRIVERS[driver]], only=[group], seconds=SECONDS)
    return {result.name: result for result in results}


@pytest.mark.parametrize("name", [case.name for case in CASES])
@pytest.mark.parametrize("driver", DRIVERS)
def test_the_client_passes(played: Played, driver: str, name: str) -> None:
    case = played[driver, name.partition(".")[0]].result()[name]
    assert case.outcome == "pass", f"expected: {case.expected}\nseen: {case.seen}"
