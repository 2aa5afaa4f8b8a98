"""The Go client passes every case, where Go is installed, and nothing is known to fail."""

import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from lmwire_conformance.host import CASES, check_host
from lmwire_conformance.report import CaseResult
from support.process.lmwire_command import REPOSITORY
from support.process.programs import program

GROUPS = list(dict.fromkeys(case.group for case in CASES))
SECONDS = 120.0
"""Maximum time of a wait. A case that passes waits for events, so it takes no longer on a busy machine."""

Played = dict[str, Future[dict[str, CaseResult]]]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program("go")
    driver = tmp_path_factory.mktemp("go") / "driver"
    build = ["go", "build", "-o", str(driver), "./internal/conformance"]
    subprocess.run(build, cwd=REPOSITORY / "clients" / "go", check=True)
    return driver


@pytest.fixture(scope="module")
def played(driver: Path, pool: ThreadPoolExecutor) -> Played:
    return {group: pool.submit(play, driver, group) for group in GROUPS}


def play(driver: Path, group: str) -> dict[str, CaseResult]:
    return {result.name: result for result in check_host([str(driver)], only=[group], seconds=SECONDS)}


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_the_client_passes(played: Played, name: str) -> None:
    case = played[name.partition(".")[0]].result()[name]
    assert case.outcome == "pass", f"expected: {case.expected}\nseen: {case.seen}"
