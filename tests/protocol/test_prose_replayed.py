"""The conversations in PROTOCOL.md and MODELS.md, replayed with a real worker.

Texts, numbers and seeds depend on the model. The events, their other members, and errors must match the document.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from random_model import write_model
from random_vision import write_vision_model
from support.models.fake_hub import Hub, running
from support.models.infill_tokenizers import write_infill_model
from support.models.random_embeddings import write_embedding_model
from support.models.random_speech import recording, write_whisper
from support.models.random_synthesis import write_qwen3_tts
from support.nightly import nightly_but
from support.process.worker_process import TERMINALS, Event, WorkerProcess
from support.process.worker_thread import RealOnThread
from support.protocol import prose
from support.protocol.prose import Transcript

pytestmark = pytest.mark.slow

TINY = "builtin:tiny"
LONG = {"max_tokens": 400, "ignore_eos": True}
# With several answers each, they run for a minute.
RUNNING = [
    {"id": f"r{n}", "cmd": "generate", "prompt": "Once", "max_tokens": 1500, "ignore_eos": True, "n": 16} for n in "12"
]

DEPENDS = {"stop", "quantization", "language", "channel", "choice", "total", "decode_tps"}
"""Members whose presence depends on the model or on its answer."""


@dataclass
class Setting:
    """The preparation for a conversation, and the changes to its commands.

    Args:
        model: the model to load first; None loads nothing.
        before: commands to send first, which still run during the conversation.
        changes: fields to replace in the host's commands, by id.
        in_one_write: write all commands at once, so that the first is in flight when the others are read.
    """

    model: str | None = TINY
    before: list[Event] = field(default_factory=list)
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    in_one_write: bool = False


# The built-in model seldom calls a tool unless it must, and its answers are long.
SETTINGS: dict[tuple[str, str], Setting] = {
    ("A conversation", "1"): Setting(None, changes={"2": {"path": TINY}}),
    ("hello", "1"): Setting(None, changes={"1": {"host_pid": os.getpid()}}),
    ("load", "7"): Setting(None),
    ("Images and sounds", "93"): Setting("vision"),
    ("The tools", "80"): Setting(changes={"80": {"tool_choice": "required"}, "81": {"max_tokens": 40}}),
    ("embed", "91"): Setting("embeddings"),
    ("transcribe", "92"): Setting("speech", changes={"92": {"audio": {"path": "note.wav"}}}),
    ("generate", "96"): Setting("infill"),
    ("speak", "94"): Setting("synthesis"),
    ("ping", "14"): Setting(before=RUNNING),
    ("stats", "15"): Setting(before=RUNNING),
    ("cancel", "12"): Setting(changes={"12": LONG}),
    ("Errors", "20"): Setting(None),
    ("More transcripts", "23"): Setting(None),
    ("More transcripts", "30"): Setting(None),
    ("More transcripts", "60"): Setting(changes={"60": LONG | {"max_tokens": 100}}, in_one_write=True),
}
TRANSCRIPTS = prose.transcripts("transcript")


def _first_id(transcript: Transcript) -> str:
    return str(json.loads(transcript.lines[0][1])["id"])


def _setting(transcript: Transcript) -> Setting:
    return SETTINGS.get((transcript.heading, _first_id(transcript)), Setting())


ABOUT_TEXT = [each for each in TRANSCRIPTS if _setting(each).model in (None, TINY)]
"""Conversations for each commit. The others load libraries for as long as all of these take together."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replayed")


@pytest.fixture(scope="module")
def models(folder: Path) -> dict[str, Callable[[], str]]:
    def written(write: Callable[[Path], Path], name: str) -> str:
        return str(folder / name if (folder / name).exists() else write(folder / name))

    return {
        "infill": lambda: written(write_infill_model, "infill"),
        "vision": lambda: written(write_vision_model, "vision"),
        "embeddings": lambda: written(write_embedding_model, "embeddings"),
        "speech": lambda: written(write_whisper, "speech"),
        "synthesis": lambda: written(write_qwen3_tts, "synthesis"),
    }


@pytest.fixture
def hub(folder: Path, tmp_path: Path) -> Iterator[Hub]:
    """Yield a hub that serves its model under any name, and stalls the download for a conversation with a cancel."""
    with running(Hub(write_model(folder / "hub"))) as hub:
        yield hub


@pytest.mark.parametrize(
    "transcript",
    nightly_but(ABOUT_TEXT, TRANSCRIPTS),
    ids=lambda item: f"{item.document}, {item.heading}, line {item.number}",
)
def test_a_real_worker_has_the_conversation(
    transcript: Transcript, models: dict[str, Callable[[], str]], hub: Hub, folder: Path, tmp_path: Path
) -> None:
    setting = _setting(transcript)
    environment = _hub_for(hub, transcript, tmp_path)
    arguments: list[str] = []
    if "audio" in setting.changes.get("92", {}):
        (folder / "note.wav").write_bytes(recording(34.1))
        setting.changes["92"]["audio"] = {"path": str(folder / "note.wav")}
        arguments = ["--media-dir", str(folder)]
    with ExitStack() as stack:
        process = partial(WorkerProcess, *arguments, env=os.environ | environment)
        worker = stack.enter_context(process() if environment or arguments else RealOnThread())
        if setting.model:
            worker.load(models.get(setting.model, lambda: TINY)())
        worker.send(*setting.before)
        for command in setting.before:
            worker.first_token(command["id"])
        start = len(worker.events)
        _converse(worker, transcript, setting, start)
        _compare(transcript, worker.events[start:], {command["id"] for command in setting.before})


def _hub_for(hub: Hub, transcript: Transcript, home: Path) -> dict[str, str]:
    """Prepare the hub for a conversation. Return the environment in which a worker finds it; empty without one."""
    paths = [json.loads(line).get("path") for arrow, line in transcript.lines if arrow == "→" and '"load"' in line]
    names = [path for path in paths if path and "/" in path]
    if not names:
        return {}
    hub.name = names[0]
    hub.stall = "model.safetensors" if any('"cancel"' in line for _, line in transcript.lines) else None
    return {"HF_ENDPOINT": hub.url, "HF_HOME": str(home)}


def _converse(worker: WorkerProcess, transcript: Transcript, setting: Setting, start: int) -> None:
    """Write the host's lines, each once the worker has sent the events that the document shows before it."""
    awaited: list[Event] = []
    unwritten = b""
    for arrow, line in transcript.lines:
        if arrow == "←":
            awaited.append(json.loads(line))
            continue
        unwritten += _changed(line, setting).encode() + b"\n"
        if setting.in_one_write:
            continue
        for event in awaited:
            _wait(worker, event, start)
        awaited.clear()
        worker.write(unwritten)
        unwritten = b""
    worker.write(unwritten)
    for event in awaited:
        _wait(worker, event, start)


def _wait(worker: WorkerProcess, like: Event, start: int) -> None:
    worker.wait_for(
        lambda event: (
            (event["event"], event.get("id")) == (like["event"], like.get("id")) and worker.events.index(event) >= start
        )
    )


def _changed(line: str, setting: Setting) -> str:
    try:
        command = json.loads(line)
    except ValueError:
        return line
    changes = setting.changes.get(str(command["id"]), {})
    return line if command["cmd"] == "info" else json.dumps(command | changes)


def _compare(transcript: Transcript, events: list[Event], others: set[str]) -> None:
    shown = [json.loads(line) for arrow, line in transcript.lines if arrow == "←"]
    seen = [event for event in events if event.get("id") not in others]
    for id in dict.fromkeys(event.get("id") for event in shown):
        wanted, came = ([event for event in some if event.get("id") == id] for some in (shown, seen))
        assert _kinds(came) == _kinds(wanted), id
        assert _terminals(came) == _terminals(wanted)
        for kind in _kinds(wanted).difference(TERMINALS):
            assert _members(wanted, kind) <= _members(came, kind)


def _kinds(events: list[Event]) -> set[str]:
    """Return the kinds of events, without progress, which depends on timing."""
    return {event["event"] for event in events} - {"progress"}


def _members(events: list[Event], kind: str) -> set[str]:
    return {name for event in events if event["event"] == kind for name in event} - DEPENDS


def _terminals(events: list[Event]) -> list[Any]:
    return [_shape(event) for event in events if event["event"] in TERMINALS]


def _shape(value: Any) -> Any:
    """Return an error as it is, and any other value as the names and types of its members."""
    if isinstance(value, dict):
        if value.get("event") == "error":
            return value
        return {name: _shape(item) for name, item in value.items() if name not in DEPENDS}
    if isinstance(value, list):
        return [_shape(value[0])] if value and isinstance(value[0], dict) else "list"
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def test_a_real_worker_has_the_conversation_of_the_bridge() -> None:
    (transcript,) = prose.transcripts("bridge")
    with WorkerProcess() as worker:
        for arrow, line in transcript.lines:
            if arrow == "→":
                command = json.loads(line)
                worker.send(command | {"path": TINY} if command["cmd"] == "load" else command)
        assert worker.wait_end() == 0
    shown = [json.loads(line) for arrow, line in transcript.lines if arrow == "←"]
    assert [[*event] for event in worker.events] == [[*event] for event in shown]
    assert [event for event in worker.events if "error" in event] == [event for event in shown if "error" in event]
