"""The mock's vectors and transcripts."""

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from lmwire_worker.mock.replies import Failure, Reply, Stage
from lmwire_worker.mock.scenario import Match, Rule, read_rules
from support.process.mock_host import LOAD, WorkerOutput, mock
from support.process.worker_process import WorkerProcess
from support.process.worker_thread import run_on_thread, start_on_thread

Json = dict[str, Any]


def embed(id: str, *texts: Any, **fields: Any) -> Json:
    return {"id": id, "cmd": "embed", "input": list(texts), "encoding": "float", **fields}


def transcribe(id: str, path: str, **fields: Any) -> Json:
    return {"id": id, "cmd": "transcribe", "audio": {"path": path}, **fields}


def vectors(output: WorkerOutput, id: str) -> list[Any]:
    return [event["embedding"] for event in output.of(id) if event["event"] == "embedding"]


def scenario(folder: Path, *rules: Json) -> list[str]:
    path = folder / "scenario.json"
    path.write_text(json.dumps({"rules": rules}))
    return mock("--scenario", str(path))


def test_the_same_text_has_the_same_vector_and_another_text_another() -> None:
    output = run_on_thread(mock(), LOAD, embed("a", "the sea", "the hill"), embed("b", "the hill"))
    sea, hill = vectors(output, "a")
    assert vectors(output, "b") == [hill] != [sea]
    assert output.terminals("a")[0] | {"usage": None} == {
        "event": "done",
        "id": "a",
        "cmd": "embed",
        "count": 2,
        "dimensions": 8,
        "usage": None,
    }
    assert output.terminals("a")[0]["usage"]["prompt_tokens"] == 4


def test_a_truncated_vector_has_length_1_unless_normalize_is_false() -> None:
    whole = embed("whole", "the sea", normalize=False)
    output = run_on_thread(
        mock(), LOAD, whole, embed("cut", "the sea", dimensions=3), embed("binary", "the sea", encoding="base64")
    )
    (raw,), (cut,), (binary,) = (vectors(output, id) for id in ("whole", "cut", "binary"))
    assert len(cut) == 3 and sum(number**2 for number in cut) == pytest.approx(1)
    assert [number / cut[0] for number in cut] == pytest.approx([number / raw[0] for number in raw[:3]])
    numbers = struct.unpack("<8f", base64.b64decode(binary))
    assert [number / numbers[0] for number in numbers] == pytest.approx([number / raw[0] for number in raw])


def test_more_dimensions_than_there_are_are_refused() -> None:
    (refused,) = run_on_thread(mock(), LOAD, embed("a", "the sea", dimensions=9)).terminals("a")
    assert (refused["code"], refused["field"]) == ("invalid_request", "dimensions")


def test_an_images_vector_is_that_of_its_file_name() -> None:
    image = {"type": "image", "media": {"path": "the sea"}}
    output = run_on_thread(mock(), LOAD, embed("a", image, {"type": "text", "text": "the sea"}))
    first, second = vectors(output, "a")
    assert first == second


def test_a_recordings_transcript_is_its_file_name_with_one_word_a_second() -> None:
    output = run_on_thread(mock(), LOAD, transcribe("t", "The sea. The hill", words=True, language="de"))
    segments = [event for event in output.of("t") if event["event"] == "segment"]
    assert [(part["index"], part["start_s"], part["end_s"], part["text"]) for part in segments] == [
        (0, 0, 2, "The sea. "),
        (1, 2, 4, "The hill"),
    ]
    assert segments[1]["words"] == [
        {"text": "The ", "start_s": 2, "end_s": 3},
        {"text": "hill", "start_s": 3, "end_s": 4},
    ]
    (done,) = output.terminals("t")
    assert (done["finish_reason"], done["duration_s"], done["language"]) == ("stop", 4, "de")


def test_a_rule_can_fail_or_give_vectors_and_words_of_its_own(tmp_path: Path) -> None:
    rules = [
        {"match": {"input": "^bad$"}, "reply": {"error": {"code": "engine_error"}}},
        {"match": {"audio": "bad"}, "reply": {"text": "Well. No", "error": {"code": "engine_error"}}},
        {"match": {"cmd": "transcribe", "has": ["prompt"]}, "reply": {"text": "Ada."}},
    ]
    output = run_on_thread(
        scenario(tmp_path, *rules),
        LOAD,
        embed("e", "good", "bad"),
        transcribe("t", "bad.wav"),
        transcribe("u", "good.wav", prompt="Ada"),
    )
    assert [event["event"] for event in output.of("e")] == ["error"]
    assert [event["event"] for event in output.of("t") if event["event"] != "progress"] == [
        "segment",
        "segment",
        "error",
    ]
    assert [event["text"] for event in output.of("u") if event["event"] == "segment"] == ["Ada."]


def test_a_cancelled_transcription_has_the_segments_so_far(tmp_path: Path) -> None:
    rule = {"match": {"audio": "."}, "reply": {"text": "One. Two.", "then": "wait"}}
    with WorkerProcess(start=start_on_thread, command=scenario(tmp_path, rule)) as worker:
        worker.call(LOAD)
        worker.send(transcribe("t", "a.wav"))
        worker.wait_for(lambda event: event.get("text") == "Two.")
        worker.call({"id": "c", "cmd": "cancel", "target": "t"})
        done = worker.terminal("t")
    assert (done["event"], done["finish_reason"]) == ("done", "cancelled")


def test_an_embed_that_waits_is_cancelled_with_an_error(tmp_path: Path) -> None:
    rule = {"match": {"input": "."}, "reply": {"then": "wait"}}
    with WorkerProcess(start=start_on_thread, command=scenario(tmp_path, rule)) as worker:
        worker.call(LOAD)
        worker.send(embed("e", "a", "b"))
        worker.wait_for(lambda event: event["event"] == "embedding")
        worker.call({"id": "c", "cmd": "cancel", "target": "e"})
        assert worker.terminal("e")["code"] == "cancelled"


@pytest.mark.parametrize(
    ("match", "reply", "problem"),
    [
        (Match(cmd="embed"), {"text": "a"}, "vectors"),
        (Match(cmd="transcribe"), {"vectors": [[1.0]]}, "vectors"),
        (Match(cmd="transcribe"), {"reasoning": "Hm."}, "text"),
        (Match(cmd="transcribe"), {"progress": [Stage(stage="prefill", current=0, unit="tokens")]}, "stage"),
        (Match(cmd="transcribe"), {"progress": [Stage(stage="transcribe", current=0, unit="tokens")]}, "seconds"),
        (Match(cmd="chat"), {"progress": [Stage(stage="transcribe", current=0, unit="seconds")]}, "stage"),
    ],
)
def test_a_rule_that_its_commands_cannot_follow_is_refused(match: Match, reply: Json, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Rule(reply=Reply(**reply), match=match)


def test_rules_for_embed_and_transcribe_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text('{"rules": [{"match": {"cmd": "embed"}, "reply": {"error": {"code": "busy"}, "delay_ms": 1}}]}')
    assert read_rules(str(path)) == [Rule(Reply(error=Failure("busy"), delay_ms=1), Match(cmd="embed"))]
