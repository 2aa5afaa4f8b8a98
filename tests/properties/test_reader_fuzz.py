"""Whatever bytes a host writes, the reader survives and answers every line once."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

import support
from lmwire_protocol import Command, Hello, Quit, RequestError
from support.process.worker_process import TERMINALS, WorkerProcess
from support.protocol.mutated_lines import Mutator
from support.protocol.reading import read_command

pytestmark = pytest.mark.slow

FUZZ = Path(support.__file__).parent / "protocol/reader_fuzz.py"
SEEDS = (20240, 20241)
LINES_OF_EACH = int(os.environ.get("LMWIRE_FUZZ_LINES", 2_700 * settings().max_examples)) // len(SEEDS)
"""Number of examples: 40,000 for each commit, and 540,000 at night. The whole version has a million."""
LONGEST_S = 600
"""Maximum seconds. A quiet machine needs 3, a busy one may need twenty times as long."""

SEED_OVER_PIPES = 20242
LINES_OVER_PIPES = min(20_000, 500 * settings().max_examples)


def test_mutated_lines_are_answered_once_each() -> None:
    runs = [
        subprocess.Popen([sys.executable, str(FUZZ), str(seed), str(LINES_OF_EACH)], stderr=subprocess.PIPE, text=True)
        for seed in SEEDS
    ]
    for seed, run in zip(SEEDS, runs, strict=True):
        _, trouble = run.communicate(timeout=LONGEST_S)
        assert run.returncode == 0, f"to see it again: python {FUZZ.name} {seed} {LINES_OF_EACH}\n{trouble}"


def ends_the_worker(command: Command | RequestError) -> bool:
    return isinstance(command, Quit) or (isinstance(command, Hello) and command.protocol[0] > 1)


def test_thousands_of_lines_reach_a_real_worker_and_none_is_lost() -> None:
    mutator, expected, sent = Mutator(SEED_OVER_PIPES), Counter[str | None](), [b'{"id":"h","cmd":"hello"}']
    for line in (mutator.line() for _ in range(LINES_OVER_PIPES)):
        if line.strip(b" \t\r"):
            id, command = read_command(line)
            if not ends_the_worker(command):
                sent.append(line)
                expected[id] += 1
    with WorkerProcess("--mock") as worker:
        worker.write(b"\n".join(sent))
        worker.close_stdin()
        assert worker.wait_end() == 0, f"seed {SEED_OVER_PIPES}: {worker.stderr[-3000:].decode()}"
    events = [event for event in worker.events[1:] if event["event"] in TERMINALS]
    answers = Counter(event.get("id", event.get("bad_id")) for event in events)
    assert answers == expected, f"seed {SEED_OVER_PIPES}"
