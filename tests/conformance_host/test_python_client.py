"""The Python client passes every case, on both faces, and nothing is known to fail."""

import sys
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from lmwire_conformance.host import CASES, check_host
from lmwire_conformance.report import CaseResult
from mutant_host import DRIVER

FACES = {"threads": [], "asyncio": ["--asyncio"]}
SECONDS = 20.0

Played = dict[tuple[str, str], Future[CaseResult]]


@pytest.fixture(scope="module")
def played(pool: ThreadPoolExecutor) -> Played:
    return {(face, case.name): pool.submit(play, face, case.name) for face in FACES for case in CASES}


def play(face: str, name: str) -> CaseResult:
    (case,) = check_host([sys.executable, str(DRIVER), *FACES[face]], only=[name], seconds=SECONDS)
    return case


@pytest.mark.parametrize("name", [case.name for case in CASES])
@pytest.mark.parametrize("face", FACES)
def test_the_client_passes(played: Played, face: str, name: str) -> None:
    case = played[face, name].result()
    assert case.outcome == "pass", f"expected: {case.expected}\nseen: {case.seen}"
