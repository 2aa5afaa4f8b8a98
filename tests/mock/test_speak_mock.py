"""The mock's speech."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from lmwire_worker.mock.replies import Reply, Stage
from lmwire_worker.mock.scenario import Match, Rule
from support.process.mock_host import LOAD, WorkerOutput, mock
from support.process.worker_process import WorkerProcess
from support.process.worker_thread import run_on_thread, start_on_thread

Json = dict[str, Any]


def speak(id: str, text: str, **fields: Any) -> Json:
    return {"id": id, "cmd": "speak", "text": text, **fields}


def parts(output: WorkerOutput, id: str) -> list[bytes]:
    return [base64.b64decode(event["audio"]) for event in output.of(id) if event["event"] == "audio"]


def scenario(folder: Path, *rules: Json) -> list[str]:
    path = folder / "scenario.json"
    path.write_text(json.dumps({"rules": rules}))
    return mock("--scenario", str(path))


def test_each_word_is_a_tone_of_its_own() -> None:
    output = run_on_thread(mock(), LOAD, speak("s", "sea hill sea", seed=7))
    sea, hill, again = parts(output, "s")
    assert sea == again != hill
    assert len(sea) == len(hill) == 1600
    (done,) = output.terminals("s")
    assert (done["finish_reason"], done["duration_s"], done["seed"]) == ("stop", 0.3, 7)


def test_a_text_longer_than_max_seconds_ends_with_length() -> None:
    output = run_on_thread(mock(), LOAD, speak("s", "sea " * 11, max_seconds=1))
    (done,) = output.terminals("s")
    assert (done["finish_reason"], done["duration_s"], len(parts(output, "s"))) == ("length", 1, 10)


def test_a_rule_can_fail_or_speak_other_words(tmp_path: Path) -> None:
    rules = [
        {"match": {"text": "bad"}, "reply": {"text": "Well. No", "error": {"code": "engine_error"}}},
        {"match": {"cmd": "speak", "has": ["voice"]}, "reply": {"text": "sea", "delay_ms": 1, "token_ms": 1}},
    ]
    output = run_on_thread(scenario(tmp_path, *rules), LOAD, speak("b", "bad"), speak("v", "one two", voice="ada"))
    assert [event["event"] for event in output.of("b")] == ["audio", "audio", "error"]
    assert parts(output, "v") == parts(run_on_thread(mock(), LOAD, speak("s", "sea")), "s")


def test_a_cancelled_speech_has_the_audio_so_far(tmp_path: Path) -> None:
    rule = {"match": {"text": "."}, "reply": {"text": "One two.", "then": "wait"}}
    with WorkerProcess(start=start_on_thread, command=scenario(tmp_path, rule)) as worker:
        worker.call(LOAD)
        worker.send(speak("s", "a"))
        worker.wait_for(lambda event: event.get("index") == 1)
        worker.call({"id": "c", "cmd": "cancel", "target": "s"})
        done = worker.terminal("s")
    assert (done["event"], done["finish_reason"], done["duration_s"]) == ("done", "cancelled", 0.2)


@pytest.mark.parametrize(
    "reply",
    [
        {"reasoning": "Hm."},
        {"then": "repeat"},
        {"choices": [{"text": "a"}]},
        {"finish_reason": "length"},
        {"progress": [Stage(stage="transcribe", current=0, unit="seconds")]},
    ],
    ids=str,
)
def test_a_rule_that_a_speech_cannot_follow_is_refused(reply: Json) -> None:
    with pytest.raises(ValueError, match="a speak has `text`"):
        Rule(reply=Reply(**reply), match=Match(cmd="speak"))
