"""Whatever a worker writes, the kit reports a failure with a rule, and never fails itself."""

import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import support
from lmwire_conformance import report
from lmwire_conformance.violation import Violation
from lmwire_conformance.worker.matching import matches
from lmwire_conformance.worker.process import WorkerProcess
from lmwire_conformance.worker.replay import replay
from lmwire_conformance.worker.runner import listed_features
from lmwire_conformance.worker.session import CheckedSession
from lmwire_conformance.worker.transcript import Transcript, read_all, substitute_n
from support.process.strange_lines import Stranger

SESSIONS = int(os.environ.get("LMWIRE_FUZZ_SESSIONS", "3000"))
"""Number of sessions in the short version."""
LINES_OF_EACH = 12
STRANGER = Path(support.__file__).parent / "process/strange_worker.py"
PLAYED = ("b-4-failed-load", "generate", "k-7-logprobs", "l-4-idle-again", "n-3-choices", "g-1-bridge", "hello")
SECONDS = 1.0
"""Maximum seconds of a wait for a strange worker, which may never answer."""

TRANSCRIPTS = {item.name: item for item in read_all()}


def commands_of(transcript: Transcript) -> list[dict[str, Any]]:
    sent = [step.what for step in transcript.steps if step.kind == "send"]
    return [substitute_n(one, 1) for what in sent for one in (what if isinstance(what, list) else [what])]


@pytest.mark.parametrize("seed", range(4))
def test_a_session_with_a_strange_worker_ends_in_a_violation_or_goes_on(seed: int) -> None:
    stranger, chance = Stranger(seed), random.Random(seed)
    conversations = [commands_of(item) for item in TRANSCRIPTS.values()]
    for _ in range(SESSIONS // 4):
        session = CheckedSession()
        for command in chance.choice(conversations)[:6]:
            session.note_written(json.dumps(command).encode() + b"\n")
            stranger.note(command)
        try:
            for _ in range(LINES_OF_EACH):
                session.check_line(stranger.line())
            session.check_end(chance.choice([0, 1, 70, -9]))
        except Violation as violation:
            assert violation.rules


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_any_answer_matches_a_pattern_or_does_not(name: str) -> None:
    stranger = Stranger(len(name))
    for step in TRANSCRIPTS[name].steps:
        if step.kind in ("answer", "event", "line"):
            for _ in range(20):
                said = dict.fromkeys(_ids(TRANSCRIPTS[name]), stranger.value())
                matches(substitute_n(step.what, 1), stranger.value(like=step.what), said)


def _ids(transcript: Transcript) -> list[str]:
    return [str(command["id"]) for command in commands_of(transcript) if "id" in command]


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAYED)
def test_a_strange_worker_fails_by_a_rule(name: str) -> None:
    for seed in range(3):
        case = replay(TRANSCRIPTS[name], [sys.executable, str(STRANGER), str(seed)], "mock", SECONDS)
        assert case.outcome == "fail", f"{STRANGER.name} {seed}"
        assert case.rules
        assert "the kit" not in case.expected, (case.expected, case.seen)
        ElementTree.fromstring(report.as_junit([case], "strangers"))
        assert report.format_result(case).replace("\n", "").isprintable()


@pytest.mark.slow
def test_invalid_features_do_not_crash_the_kit() -> None:
    answer = {"event": "error", "id": "features", "error": "x", "code": "bad_model", "retryable": False, "features": 7}
    worker = f"import sys; sys.stdin.readline(); print({json.dumps(json.dumps(answer))})"
    assert listed_features([sys.executable, "-c", worker], SECONDS) == frozenset()


@pytest.mark.slow
def test_a_line_without_an_end_is_reported_while_it_grows() -> None:
    endless = "import sys\nwhile True: sys.stdout.write('x' * 10000)"
    case = replay(TRANSCRIPTS["hello"], [sys.executable, "-c", f"input()\n{endless}"], "mock", 30.0)
    assert case.outcome == "fail"
    assert "F-12" in case.rules


HALF_A_LINE = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'{"event":"tok'), os._exit(0)))
sys.stdin.readline()
print('{"event":"done","id":"p","state":"idle","active":0,"queued":0}', flush=True)
%s
os.write(1, b'{"event":"tok')
"""
PING = b'{"id":"p","cmd":"ping"}\n'


def answered(at_the_end: str) -> WorkerProcess:
    """Start a worker that writes half a line at its end, and wait for its answer to a ping."""
    worker = WorkerProcess([sys.executable, "-c", HALF_A_LINE % at_the_end], 30.0)
    worker.write(PING)
    worker.wait(lambda: worker.session.terminals["p"] or None, (), "the answer to a ping")
    return worker


@pytest.mark.slow
def test_a_signal_may_cut_the_last_line() -> None:
    worker = answered("signal.pause()")
    worker.signal(signal.SIGTERM)
    assert worker.wait_exit(None) == 0
    worker.kill()


@pytest.mark.slow
def test_nothing_else_may_cut_the_last_line() -> None:
    worker = answered("sys.stdin.readline()")
    worker.close_stdin()
    with pytest.raises(Violation) as raised:
        worker.wait_exit(None)
    assert raised.value.rules == ("F-11",)
    worker.kill()
