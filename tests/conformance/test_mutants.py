"""Every worker with a deliberate fault is caught, and the report names the rule that it breaks."""

import sys
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from lmwire_conformance.report import CaseResult
from lmwire_conformance.worker import check_worker
from support.process.worker_process import SECONDS
from support.protocol.mutant_worker import CALLING, CALLS, MUTANTS, command

MUTANT_S = 12.0
"""Maximum seconds of a wait for a mutant. One that is caught by a missing line takes this long."""

Played = dict[str, Future[CaseResult]]


@pytest.fixture(scope="module")
def played(pool: ThreadPoolExecutor) -> Played:
    return {name: pool.submit(play, command(name), MUTANTS[name].caught_by, MUTANT_S) for name in MUTANTS}


def play(command: list[str], transcript: str, seconds: float) -> CaseResult:
    (case,) = check_worker(command, only=[transcript], seconds=seconds)
    return case


@pytest.mark.parametrize("name", MUTANTS)
def test_a_worker_is_caught_that(played: Played, name: str) -> None:
    case = played[name].result()
    assert case.outcome == "fail"
    assert MUTANTS[name].breaks in case.rules, (case.expected, case.seen)


@pytest.mark.parametrize("name", CALLING)
def test_a_mock_that_calls_passes_without_a_mutation(name: str) -> None:
    case = play([sys.executable, "-P", "-m", "lmwire_worker", "--mock", *CALLS], name, SECONDS)
    assert case.outcome == "pass", (case.expected, case.seen)
