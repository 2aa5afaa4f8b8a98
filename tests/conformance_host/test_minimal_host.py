"""protocol/minimal_host.py, which other hosts copy, keeps the rules of the Core."""

import json
import os
import runpy
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lmwire_conformance import vector as vectors
from lmwire_conformance.host import CASES, check_host
from lmwire_conformance.report import CaseResult
from lmwire_conformance.vector import Vector
from support.nightly import asked_for, nightly_but
from support.process.lmwire_command import LMWIRE, REPOSITORY
from support.process.worker_process import SECONDS

HOST = REPOSITORY / "protocol/minimal_host.py"
DRIVER = REPOSITORY / "tests/support/protocol/minimal_host_driver.py"
WITHOUT = ("choices", "tool-calls", "results", "lines")
"""Groups that ask for more than the Core. Below are the lines that do not."""
NAMES = [case.name for case in CASES if case.group not in WITHOUT]
SAMPLE = [case.name for case in CASES if case.group in ("startup", "cancellation", "shutdown")]
"""Cases for each commit. Those of lost workers have a sample below, in a host that lacks a line."""
PARTS = runpy.run_path(str(HOST))
Played = dict[str, Future[dict[str, CaseResult]]]


@pytest.fixture(scope="module")
def played(pool: ThreadPoolExecutor, request: pytest.FixtureRequest) -> Played:
    groups = dict.fromkeys(name.partition(".")[0] for (name,) in asked_for(request, "name"))
    return {group: pool.submit(play, group, HOST) for group in groups}


def play(only: str, host: Path) -> dict[str, CaseResult]:
    command = [sys.executable, str(DRIVER), str(host)]
    return {result.name: result for result in check_host(command, only=[only], seconds=SECONDS)}


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly_but(SAMPLE, NAMES))
def test_it_passes(played: Played, name: str) -> None:
    case = played[name.partition(".")[0]].result()[name]
    assert case.outcome == "pass", f"expected: {case.expected}\nseen: {case.seen}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "line", "instead"),
    [
        ("worker-loss.fails-requests-to-a-dead-worker", "if self.lost:  # nobody", "if False:  # nobody"),
        ("worker-loss.loses-requests-at-the-end-of-the-process:daemon", "{self.exit_notice}", "set()"),
        ("cancellation.cancels-a-request-that-it-gives-up", "self.cancel(request)  # its", "pass  # its"),
        ("shutdown.closes-although-a-process-holds-the-pipes:child", "self.signal(SIGKILL)  # its", "pass  # its"),
    ],
)
def test_it_needs_what_first_hosts_lack(case: str, line: str, instead: str, tmp_path: Path) -> None:
    text = HOST.read_text(encoding="utf-8")
    assert text.count(line) == 1
    (tmp_path / "host.py").write_text(text.replace(line, instead), encoding="utf-8")
    (result,) = check_host([sys.executable, str(DRIVER), str(tmp_path / "host.py")], only=[case], seconds=10)
    assert result.outcome == "fail"


@pytest.mark.slow
def test_it_answers_a_prompt() -> None:
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(LMWIRE).parent), os.environ["PATH"]])}
    command = [sys.executable, str(HOST), "builtin:tiny", "Who are you?"]
    assert subprocess.check_output(command, env=environment, text=True, timeout=SECONDS).startswith("I am the tiny")
    command[2] = "./missing"
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (refused.returncode, refused.stderr.partition(":")[0]) == (1, "model_not_found")


def knows(vector: Vector) -> bool:
    """Return whether the minimal host checks an event in full: one of the Core, for a request."""
    try:
        event = json.loads(vector.line)
    except ValueError:
        return False
    if (
        not isinstance(event, dict)
        or not isinstance(event.get("id"), str)
        or event.keys() & {"logprobs", "prompt_logprobs", "choices", "cache_miss", "ranks"}
    ):
        return False
    kind = event.get("event")
    return kind in [*PARTS["EVENTS"]] and (kind != "done" or vector.entry.get("command") in PARTS["DONE"])


def fits(vector: Vector) -> bool:
    """Return whether the minimal host takes an event for a whole one."""
    event: dict[str, Any] = json.loads(vector.line)
    form = PARTS["EVENTS"][event["event"]]
    more = PARTS["DONE"][vector.entry["command"]] if event["event"] == "done" else {}
    return PARTS["fits"](event, form | more)


def test_its_forms_of_events_are_those_of_the_protocol() -> None:
    for vector in filter(knows, vectors.read("events.valid")):
        assert fits(vector), vector.name
    broken = [vector for vector in vectors.read("events.invalid") if vector.entry["host"] == "end" and knows(vector)]
    assert len(broken) > 20
    assert [vector.name for vector in broken if fits(vector)] == []
