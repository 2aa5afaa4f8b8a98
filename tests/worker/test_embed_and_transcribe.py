"""Vectors and transcripts of a real worker, over its pipes, from tiny models with random weights."""

import base64
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lmwire_worker.transcription import whisper
from random_model import write_model
from support.models.random_embeddings import write_embedding_model
from support.models.random_speech import recording, write_whisper
from support.process.worker_process import Event, WorkerProcess
from support.process.worker_thread import RealOnThread

pytestmark = pytest.mark.slow

HOURS_S = 900
"""Length of a recording that takes many seconds, in seconds."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {
        "text": write_model(root / "text"),
        "vectors": write_embedding_model(root / "vectors"),
        "speech": write_whisper(root / "speech"),
    }


@pytest.fixture(scope="module")
def worker(folders: dict[str, Path]) -> Iterator[WorkerProcess]:
    """Random weights are never sure of anything: a window would be tried six times."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(whisper, "TEMPERATURES", ())
        with RealOnThread("--media-dir", str(folders["text"].parent)) as worker:
            yield worker


@pytest.fixture(scope="module")
def load(worker: WorkerProcess, folders: dict[str, Path]) -> Callable[[str], Event]:
    """Return a function that loads a kind of model, unless it is loaded already, and returns the load's `done`."""
    loads: list[tuple[str, Event]] = []

    def load(kind: str) -> Event:
        if not loads or loads[-1][0] != kind:
            loads.append((kind, worker.load(folders[kind], id=f"load {len(loads)}")))
        return loads[-1][1]

    return load


def audio(seconds: float, rate: int = 8000) -> dict[str, str]:
    return {"data": base64.b64encode(recording(seconds, rate=rate)).decode()}


def test_hello_lists_what_this_installation_has(worker: WorkerProcess) -> None:
    hello = worker.call({"id": "hello", "cmd": "hello"})
    assert {"embed", "transcribe"} <= {*hello["features"]}
    assert {"mlx_lm", "mlx_vlm", "mlx_audio"} <= {*hello["engines"]}


def test_vectors_come_one_an_event_before_the_usage(worker: WorkerProcess, load: Callable[[str], Event]) -> None:
    loaded = load("vectors")
    assert loaded["capabilities"] == ["embed", "tokenize"]
    done = worker.call({"id": "e", "cmd": "embed", "input": ["the sea", "the hill"], "encoding": "float"})
    binary = worker.call({"id": "b", "cmd": "embed", "input": ["the hill"]})
    events = {event["index"]: event for event in worker.of("e") if event["event"] == "embedding"}
    assert {index: (event["dims"], len(event["embedding"])) for index, event in events.items()} == {
        0: (64, 64),
        1: (64, 64),
    }
    assert (done["count"], done["dimensions"], binary["count"]) == (2, 64, 1)
    assert (
        done["usage"]["prompt_tokens"]
        == worker.call({"id": "sea", "cmd": "tokenize", "prompt": "the sea"})["count"]
        + (binary["usage"]["prompt_tokens"])
    )
    numbers = struct.unpack("<64f", base64.b64decode(worker.of("b")[0]["embedding"]))
    assert numbers == pytest.approx(events[1]["embedding"], abs=1e-5)


def test_many_requests_for_vectors_go_together_and_a_cancelled_one_ends_with_an_error(
    worker: WorkerProcess, load: Callable[[str], Event]
) -> None:
    load("vectors")
    long = {"id": "long", "cmd": "embed", "input": ["the sea is wide " * 10] * 2048}
    worker.send(long, *({"id": f"s{at}", "cmd": "embed", "input": [f"hill {at}"]} for at in range(20)))
    assert all(worker.terminal(f"s{at}")["count"] == 1 for at in range(20))
    worker.call({"id": "c", "cmd": "cancel", "target": "long"})
    assert worker.terminal("long")["code"] == "cancelled"


def test_a_transcript_comes_with_progress_and_ends_with_the_length(
    worker: WorkerProcess, load: Callable[[str], Event]
) -> None:
    assert load("speech")["capabilities"] == ["transcribe"]
    done = worker.call({"id": "t", "cmd": "transcribe", "audio": audio(4, 16_000), "words": True})
    segments = [event for event in worker.of("t") if event["event"] == "segment"]
    assert [event["index"] for event in segments] == list(range(len(segments)))
    assert segments and all("words" in event for event in segments)
    assert (done["finish_reason"], done["duration_s"], done["language"]) == ("stop", 4, "en")
    assert {event["stage"] for event in worker.of("t") if event["event"] == "progress"} == {"transcribe"}


def test_a_cancel_takes_effect_within_a_window_and_keeps_the_segments(
    worker: WorkerProcess, folders: dict[str, Path], load: Callable[[str], Event]
) -> None:
    load("speech")
    hours = folders["text"].parent / "hours.wav"
    hours.write_bytes(recording(HOURS_S, rate=8000))
    worker.send({"id": "hours", "cmd": "transcribe", "audio": {"path": str(hours)}})
    worker.wait_for(lambda event: event.get("id") == "hours" and event["event"] == "segment")
    worker.call({"id": "cancel hours", "cmd": "cancel", "target": "hours"})
    done = worker.terminal("hours")
    assert (done["event"], done["finish_reason"], done["duration_s"]) == ("done", "cancelled", HOURS_S)


def test_a_transcription_ends_with_its_time(worker: WorkerProcess, load: Callable[[str], Event]) -> None:
    load("speech")
    done = worker.call({"id": "slow", "cmd": "transcribe", "audio": audio(300), "timeout_ms": 100})
    assert (done["event"], done["finish_reason"]) == ("done", "timeout")


def test_a_recording_is_read_from_where_the_host_allowed(
    worker: WorkerProcess, folders: dict[str, Path], load: Callable[[str], Event]
) -> None:
    load("speech")
    inside = folders["text"].parent / "note.wav"
    inside.write_bytes(recording(1))
    done = worker.call({"id": "inside", "cmd": "transcribe", "audio": {"path": str(inside)}})
    outside = worker.call({"id": "outside", "cmd": "transcribe", "audio": {"path": "/etc/hostname"}})
    broken = worker.call({"id": "broken", "cmd": "transcribe", "audio": {"data": "aGk="}})
    assert done["duration_s"] == 1
    assert (outside["event"], outside["field"]) == ("error", "audio.path")
    assert (broken["code"], broken["field"]) == ("invalid_request", "audio.data")


EMBED: Event = {"cmd": "embed", "input": ["a"]}
TRANSCRIBE: Event = {"cmd": "transcribe", "audio": {"data": ""}}
CHAT: Event = {"cmd": "chat", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("kind", "command", "able"),
    [
        # The model of the tests above is first: each other is a load.
        ("speech", CHAT, "transcribe"),
        ("speech", EMBED, "transcribe"),
        ("speech", {"cmd": "tokenize", "prompt": "a"}, "transcribe"),
        ("vectors", CHAT, "embed, tokenize"),
        ("vectors", TRANSCRIBE, "embed, tokenize"),
        ("text", EMBED, "generate, chat, tokenize"),
        ("text", TRANSCRIBE, "generate, chat, tokenize"),
    ],
)
def test_a_command_that_a_model_cannot_serve_is_refused_with_what_it_can(
    worker: WorkerProcess,
    folders: dict[str, Path],
    load: Callable[[str], Event],
    kind: str,
    command: dict[str, Any],
    able: str,
) -> None:
    name = f"{kind} {command['cmd']}"
    load(kind)
    refused = worker.call({"id": name, **command})
    assert refused["code"] == "unsupported"
    assert str(folders[kind]) in refused["error"]
    assert able in refused["error"]
    other = {"embed": "an embedding model", "transcribe": "a model that transcribes"}.get(
        command["cmd"], "a language model"
    )
    assert f"Load {other} for it" in refused["error"]
