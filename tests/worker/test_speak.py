"""Speech over a real worker's pipes, from a tiny model with random weights."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from random_model import write_model
from support.models.random_synthesis import write_qwen3_tts
from support.process.worker_process import Event, WorkerProcess
from support.process.worker_thread import RealOnThread

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def worker(root: Path) -> Iterator[WorkerProcess]:
    with RealOnThread() as worker:
        assert worker.load(write_qwen3_tts(root / "speaks", ends=False))["capabilities"] == ["speak"]
        yield worker


def speak(id: str, **fields: object) -> Event:
    """A speech of several parts, since the longest part takes only seconds."""
    return {"id": id, "cmd": "speak", "text": "Hello there. " * 120, **fields}


def seconds_of(worker: WorkerProcess, id: str) -> float:
    parts = [event for event in worker.of(id) if event["event"] == "audio"]
    assert [part["index"] for part in parts] == list(range(len(parts)))
    assert {part["sample_rate"] for part in parts} <= {24_000}
    return sum(len(base64.b64decode(part["audio"])) for part in parts) / 48_000


def wait_for_audio(worker: WorkerProcess, id: str) -> None:
    worker.wait_for(lambda event: event.get("id") == id and event["event"] == "audio")


def test_hello_lists_the_command(worker: WorkerProcess) -> None:
    assert "speak" in worker.call({"id": "hello", "cmd": "hello"})["features"]


def test_a_cancelled_speech_ends_after_a_step_with_the_audio_so_far(worker: WorkerProcess) -> None:
    worker.send(speak("endless"), speak("next", timeout_ms=1))
    wait_for_audio(worker, "endless")
    worker.call({"id": "cancel", "cmd": "cancel", "target": "endless"})
    done = worker.terminal("endless")
    assert (done["event"], done["finish_reason"]) == ("done", "cancelled")
    assert done["duration_s"] == pytest.approx(seconds_of(worker, "endless"), abs=1e-3)
    assert done["duration_s"] > 0
    assert worker.terminal("next")["finish_reason"] == "timeout"


def test_the_seed_of_a_speech_is_reported_and_gives_the_same_speech(worker: WorkerProcess) -> None:
    first: list[str] = []
    for id in ("a", "b"):
        worker.send(speak(id, seed=5))
        wait_for_audio(worker, id)
        worker.call({"id": f"cancel {id}", "cmd": "cancel", "target": id})
        assert worker.terminal(id)["seed"] == 5
        first.append(next(event["audio"] for event in worker.of(id) if event["event"] == "audio"))
    assert first[0] == first[1]


def test_a_voice_that_the_model_does_not_have_is_refused_with_those_that_it_has(worker: WorkerProcess) -> None:
    refused = worker.call(speak("voice", voice="nobody"))
    assert (refused["code"], refused["field"]) == ("invalid_request", "voice")
    assert "ada, grace" in refused["error"]


@pytest.mark.parametrize(
    "command",
    [
        {"cmd": "chat", "messages": [{"role": "user", "content": "Hi"}]},
        {"cmd": "tokenize", "prompt": "a"},
        {"cmd": "transcribe", "audio": {"data": ""}},
    ],
    ids=lambda command: str(command["cmd"]),
)
def test_other_commands_are_refused_with_what_the_model_can_serve(worker: WorkerProcess, command: Event) -> None:
    refused = worker.call({"id": f"other {command['cmd']}", **command})
    assert refused["code"] == "unsupported" and "it can serve speak" in refused["error"]


def test_a_model_of_text_refuses_to_speak(root: Path) -> None:
    with RealOnThread() as worker:
        worker.load(write_model(root / "text"))
        refused = worker.call(speak("text"))
    assert refused["code"] == "unsupported" and "cannot serve speak" in refused["error"]
