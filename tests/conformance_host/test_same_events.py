"""The users of all clients get the same events from the same worker, byte for byte."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lmwire.cli.bench.benchmarks.hosts import record
from lmwire.cli.bench.programs import replay_worker
from lmwire_conformance.host import wire
from support.protocol.client_events import expected_events, seen_events
from support.protocol.client_programs import PROGRAMS, c_program
from support.protocol.client_transcripts import TRANSCRIPTS

pytestmark = pytest.mark.slow

OPTIONS = {"asyncio": ["--events", "--asyncio"], "go": ["-events"]}
STREAMS = 32


def replaying(file: Path) -> list[str]:
    return [sys.executable, str(Path(replay_worker.__file__)), str(file)]


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command of a worker that plays all transcripts."""
    recorded = [{"to": "hello", "lines": [wire.encode(wire.hello_done("$ID")).decode().strip()]}]
    for each in TRANSCRIPTS:
        recorded.append({"to": each.key, "lines": each.lines})
    file = tmp_path_factory.mktemp("replay") / "transcripts.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in recorded), encoding="utf-8")
    return replaying(file)


@pytest.mark.parametrize("client", [*PROGRAMS, "asyncio", "c"])
def test_each_user_gets_the_events_of_the_transcripts(client: str, worker: list[str]) -> None:
    name = "python" if client == "asyncio" else client
    driver = [*{**PROGRAMS, "c": c_program}[name]("conformance"), *OPTIONS.get(client, ["--events"])]
    seen = seen_events(driver, worker, TRANSCRIPTS)
    for transcript in TRANSCRIPTS:
        got = seen[transcript.name][-1:] if transcript.is_whole and client != "c" else seen[transcript.name]
        assert got == expected_events(transcript, name), transcript.name


@pytest.mark.parametrize("client", [*PROGRAMS, "c"])
def test_each_benchmark_program_counts_every_event(client: str, tmp_path: Path) -> None:
    worker = replaying(record(tmp_path, 40))
    program = {**PROGRAMS, "c": c_program}[client]("bench")
    output = subprocess.check_output([*program, str(STREAMS), *worker])
    seen = json.loads(output)
    assert seen.pop("events") == STREAMS * 40
    assert [*seen] and all(seen[name] > 0 for name in ("first_token_ms", "seconds"))
