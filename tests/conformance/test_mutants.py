"""Every worker with a deliberate fault is caught, and the report names the rule that it breaks."""

import sys
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from lmwire_conformance.report import CaseResult
from lmwire_conformance.worker import check_worker
from support.protocol.mutant_worker import CALLING, CALLS, MUTANTS, command

SECONDS = 12.0
"""Seconds that a busy machine may need. A mutant that is caught by a missing line takes this long."""

Played = dict[str, Future[CaseResult]]


@pytest.fixture(scope="module")
def played(pool: ThreadPoolExecutor) -> Played:
    return {name: pool.submit(play, command(name), MUTANTS[name].caught_by) for name in MUTANTS}


def play(command: list[str], transcript: str) -> CaseResult:
    (case,) = check_worker(command, only=[transcript], seconds=SECONDS)
    return case


@pytest.mark.parametrize("name", MUTANTS)
def test_a_worker_is_caught_that(played: Played, name: str) -> None:
    case = played[name].result()
    assert case.outcome == "fail"
    assert MUTANTS[name].breaks in case.rules, (case.expected, case.seen)


@pytest.mark.parametrize("name", CALLING)
def test_a_mock_that_calls_passes_without_a_mutation(name: str) -> None:
    case = play([sys.executable, "-P", "-m", "lmwire_worker", "--mock", *CALLS], name)
    assert case.outcome == "pass", (case.expected, case.seen)
