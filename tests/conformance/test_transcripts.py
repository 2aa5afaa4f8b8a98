"""The transcripts: each proves rules of PROTOCOL.md, in the format that README.md describes."""

import json
from pathlib import Path

import pytest

from lmwire_conformance.worker import matching, replay, transcript
from lmwire_conformance.worker.transcript import Transcript
from lmwire_protocol import FEATURES
from support.many_cases import for_each
from support.protocol.traceability import statements

TRANSCRIPTS = transcript.read_all()
README = (transcript.folder() / "README.md").read_text(encoding="utf-8")
HEAD = {"transcript": "A test.", "says": {"F-1": "Each line"}}


@for_each(TRANSCRIPTS, lambda item: item.name)
def test_what_a_transcript_quotes_stands_under_its_rule(item: Transcript) -> None:
    for rule, sentence in item.says.items():
        assert sentence in statements()[rule], rule


@for_each(TRANSCRIPTS, lambda item: item.name)
def test_every_rule_of_a_transcript_is_proved_by_a_step(item: Transcript) -> None:
    proved = {step.rule for step in item.steps}
    assert item.steps
    assert None in proved or proved == set(item.rules)


@for_each(TRANSCRIPTS, lambda item: item.name)
def test_what_a_transcript_needs_is_a_feature_of_the_protocol(item: Transcript) -> None:
    assert item.needs <= set(FEATURES)


@pytest.mark.slow
def test_every_step_and_matcher_is_described_and_played() -> None:
    for kind, options in transcript.STEPS.items():
        assert f'{{"{kind}": ' in README
        assert hasattr(replay.Replay, f"_step_{kind}")
        assert all(f'"{option}"' in README or f"`{option}`" in README for option in options)
    for matcher in matching.MATCHERS:
        assert f'{{"{matcher}": ' in README


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        ({"sing": 1}, "a step has one of"),
        ({"send": {}, "close": "stdin"}, "a step has one of"),
        ({"close": "stdin", "times": 2}, "`close` has no times"),
        ({"answer": {"id": {"$like": "a"}}}, r"\$like is not a matcher"),
        ({"answer": {"id": {"$type": "string", "x": 1}}}, r"\$type is not a matcher, or has other members beside it"),
        ({"answer": {}, "rule": "F-2"}, "F-2 is not in `says`"),
        ([], "not an object"),
    ],
)
def test_a_step_that_the_format_does_not_have_is_refused_with_its_line(
    tmp_path: Path, step: object, complaint: str
) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text(f"{json.dumps(HEAD)}\n{json.dumps(step)}\n")
    with pytest.raises(ValueError, match=f"wrong.jsonl:2: .*{complaint}"):
        transcript.read(path)


@pytest.mark.parametrize("head", ["", "{}", json.dumps({"transcript": "A test."}), "[]", "{"])
def test_a_file_without_a_head_is_refused(tmp_path: Path, head: str) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text(head)
    with pytest.raises(ValueError, match=r"wrong\.jsonl"):
        transcript.read(path)


def test_bytes_are_pieces_joined() -> None:
    assert transcript.to_bytes(["a", {"hex": "ff00"}, {"repeat": "é", "times": 2}]) == b"a\xff\x00\xc3\xa9\xc3\xa9"
    assert transcript.to_bytes("é\n") == b"\xc3\xa9\n"
