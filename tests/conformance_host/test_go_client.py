"""The Go client passes every case, where Go is installed, and nothing is known to fail."""

import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from lmwire_conformance.host import CASES, check_host
from lmwire_conformance.report import CaseResult
from support.nightly import asked_for, nightly_but
from support.process.lmwire_command import REPOSITORY
from support.process.programs import program

SECONDS = 120.0
"""Maximum time of a wait. A case that passes waits for events, so it takes no longer on a busy machine."""

SAMPLE = [case.name for case in CASES if case.group == "commands"]
"""Cases for each commit: what the host writes. test_same_events.py compares what its users receive. `make go` has the
client's own tests."""

pytestmark = pytest.mark.slow
Played = dict[str, Future[dict[str, CaseResult]]]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program("go")
    driver = tmp_path_factory.mktemp("go") / "driver"
    build = ["go", "build", "-o", str(driver), "./internal/conformance"]
    subprocess.run(build, cwd=REPOSITORY / "clients" / "go", check=True)
    return driver


@pytest.fixture(scope="module")
def played(driver: Path, pool: ThreadPoolExecutor, request: pytest.FixtureRequest) -> Played:
    groups = dict.fromkeys(name.partition(".")[0] for (name,) in asked_for(request, "name"))
    return {group: pool.submit(play, driver, group) for group in groups}


def play(driver: Path, group: str) -> dict[str, CaseResult]:
    return {result.name: result for result in check_host([str(driver)], only=[group], seconds=SECONDS)}


@pytest.mark.parametrize("name", nightly_but(SAMPLE, [case.name for case in CASES]))
def test_the_client_passes(played: Played, name: str) -> None:
    case = played[name.partition(".")[0]].result()[name]
    assert case.outcome == "pass", f"expected: {case.expected}\nseen: {case.seen}"
