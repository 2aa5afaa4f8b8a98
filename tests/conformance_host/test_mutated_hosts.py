"""Hosts that are broken on purpose: each is caught, and the report names the rule that it breaks."""

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from lmwire_conformance.host import check_host
from lmwire_conformance.report import Case
from mutated_hosts import MUTANTS, Mutant

SECONDS = 2.0
"""Some are caught by what they do not do."""

Played = dict[str, Future[Case]]


@pytest.fixture(scope="module")
def played(pool: ThreadPoolExecutor) -> Played:
    return {name: pool.submit(play, mutant) for name, mutant in MUTANTS.items()}


def play(mutant: Mutant) -> Case:
    (case,) = check_host(mutant.command, only=[mutant.caught_by], seconds=SECONDS)
    return case


@pytest.mark.parametrize("name", MUTANTS)
def test_a_host_is_caught_that(played: Played, name: str) -> None:
    case = played[name].result()
    assert case.outcome == "fail"
    assert MUTANTS[name].breaks in case.rules, (case.expected, case.seen)
