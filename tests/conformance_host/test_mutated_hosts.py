"""Every host with a deliberate fault is caught, and the report names the rule that it breaks."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from lmwire_conformance.host import check_host
from lmwire_conformance.host.cases import worker_loss
from lmwire_conformance.report import CaseResult
from support.nightly import asked_for, nightly_but
from support.protocol.mutant_host import MUTANTS, NOT_MADE, command

SECONDS = 10.0
"""Seconds that a busy machine may need. A mutant that is caught by a missing line takes this long."""
OBSERVED_S = 120.0
"""Longest observation of a host that starts its worker again and again."""

SAMPLE = (
    "knows_no_choices",
    "loses_an_event_of_a_read",
    "gives_up_without_a_cancel",
    "writes_the_id_last",
    "takes_an_exit_with_0_for_success",
)
"""One mutant of each family, for each commit: these show that mutations still reach what the client runs."""

pytestmark = pytest.mark.slow
Played = dict[str, Future[CaseResult]]


@pytest.fixture(scope="module")
def played(pool: ThreadPoolExecutor, request: pytest.FixtureRequest) -> Iterator[Played]:
    with pytest.MonkeyPatch.context() as patched:
        # A mutant that never pauses is caught by its starts, however slowly the machine makes them.
        patched.setattr(worker_loss, "_OBSERVED_S", OBSERVED_S)
        yield {name: pool.submit(play, name) for (name,) in asked_for(request, "name")}


def play(name: str) -> CaseResult:
    (case,) = check_host(command(name), only=[MUTANTS[name].caught_by], seconds=SECONDS)
    return case


@pytest.mark.parametrize("name", nightly_but(SAMPLE, MUTANTS))
def test_a_host_is_caught_that(played: Played, name: str) -> None:
    case = played[name].result()
    assert case.outcome == "fail"
    assert NOT_MADE not in case.seen
    assert MUTANTS[name].breaks in case.rules, (case.expected, case.seen)
