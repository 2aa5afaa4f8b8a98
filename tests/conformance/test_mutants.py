"""Workers that are broken on purpose: each is caught, and the report names the rule that it breaks."""

import sys
from pathlib import Path

import pytest

import mutants
from lmwire_conformance.worker import check_worker
from mutants import CALLING, CALLS, MUTANTS

SECONDS = 2.0
"""Some are caught by what they do not do."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_worker_is_caught_that(name: str) -> None:
    command = [sys.executable, str(Path(mutants.__file__)), name]
    (case,) = check_worker(command, only=[MUTANTS[name].caught_by], seconds=SECONDS)
    assert case.outcome == "fail"
    assert MUTANTS[name].breaks in case.rules, (case.expected, case.seen)


@pytest.mark.parametrize("name", CALLING)
def test_a_mock_that_calls_is_right_without_a_mutation(name: str) -> None:
    command = [sys.executable, "-m", "lmwire_worker", "--mock", *CALLS]
    (case,) = check_worker(command, only=[name], seconds=SECONDS)
    assert case.outcome == "pass", (case.expected, case.seen)
