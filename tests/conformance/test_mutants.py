"""Every worker with a deliberate fault is caught, and the report names the rule that it breaks."""

import sys
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from lmwire_conformance.report import CaseResult
from lmwire_conformance.worker import check_worker
from support.nightly import asked_for, nightly_but
from support.process.worker_process import SECONDS
from support.protocol.mutant_worker import CALLING, CALLS, MUTANTS, command

MUTANT_S = 12.0
"""Maximum seconds of a wait for a mutant. One that is caught by a missing line takes this long."""

SAMPLE = (
    "leaves_a_call_without_an_end",
    "mixes_the_tokens_of_a_choice",
    "serves_requests_while_it_drains",
    "escapes_no_separators",
    "answers_a_repeated_prompt_differently",
    "counts_an_ids_characters",
    "drops_a_terminal",
)
"""One mutant of each family, for each commit: only these show that mutations still reach what the worker runs. That the
kit notices each rule at all, test_broken_rules.py shows without a worker."""

pytestmark = pytest.mark.slow
Played = dict[str, Future[CaseResult]]


@pytest.fixture(scope="module")
def played(pool: ThreadPoolExecutor, request: pytest.FixtureRequest) -> Played:
    names = [name for (name,) in asked_for(request, "name") if name in MUTANTS]
    return {name: pool.submit(play, command(name), MUTANTS[name].caught_by, MUTANT_S) for name in names}


def play(command: list[str], transcript: str, seconds: float) -> CaseResult:
    (case,) = check_worker(command, only=[transcript], seconds=seconds)
    return case


@pytest.mark.parametrize("name", nightly_but(SAMPLE, MUTANTS))
def test_a_worker_is_caught_that(played: Played, name: str) -> None:
    case = played[name].result()
    assert case.outcome == "fail"
    assert MUTANTS[name].breaks in case.rules, (case.expected, case.seen)


@pytest.mark.parametrize("name", CALLING)
def test_a_mock_that_calls_passes_without_a_mutation(name: str) -> None:
    case = play([sys.executable, "-P", "-m", "lmwire_worker", "--mock", *CALLS], name, SECONDS)
    assert case.outcome == "pass", (case.expected, case.seen)
