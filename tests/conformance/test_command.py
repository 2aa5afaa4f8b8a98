"""`lmwire conformance worker`, as a person or a CI system runs it."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.process.lmwire_command import lmwire
from support.protocol.mutant_worker import command

pytestmark = pytest.mark.slow

MOCK = ("--", sys.executable, "-P", "-m", "lmwire_worker", "--mock")
BROKEN = ("--", *command("escapes_no_separators"))
SEPARATORS = ("--only", "f-13-separators")


def test_passed_cases_are_listed_and_the_exit_code_is_0() -> None:
    ran = lmwire("conformance", "worker", "--only", "F-13", "--only", "s-1-wrong-id", *MOCK)
    assert ran.returncode == 0, ran.stderr
    first, second, summary = ran.stdout.splitlines()
    assert first.split()[:3] == ["pass", "f-13-separators", "[F-13]"]
    assert second.split()[:3] == ["pass", "s-1-wrong-id", "[S-1]"]
    assert summary.startswith("2 passed in ")


def test_cases_for_missing_features_are_skipped() -> None:
    ran = lmwire("conformance", "worker", "--only", "f-13-separators", "--only", "j-1-formats", *MOCK)
    assert ran.returncode == 0, ran.stderr
    assert "skip   j-1-formats" in ran.stdout
    assert "the worker does not list chat.format, generate.format" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("1 passed, 1 skipped in ")


def test_a_failure_is_shown_with_both_lines_and_the_exit_code_is_1(tmp_path: Path) -> None:
    junit, saved = tmp_path / "report.xml", tmp_path / "report.json"
    ran = lmwire("conformance", "worker", *SEPARATORS, "--junit", str(junit), "--json", str(saved), *BROKEN)
    assert ran.returncode == 1
    assert "expected: U+2028 escaped (f-13-separators.jsonl:3)" in ran.stdout
    assert 'seen:     {"event":"done","id":"a<U+2028>b' in ran.stdout
    (case,) = json.loads(saved.read_text(encoding="utf-8"))["cases"]
    assert (case["outcome"], case["rules"]) == ("fail", ["F-13"])
    assert ElementTree.parse(junit).getroot().get("failures") == "1"


def test_a_known_failure_exits_0_and_a_stale_entry_1(tmp_path: Path) -> None:
    known = tmp_path / "baseline"
    known.write_text("f-13-separators: our JSON library cannot escape them\n")
    options = ("conformance", "worker", *SEPARATORS, "--baseline", str(known))
    assert lmwire(*options, *BROKEN).returncode == 0
    stale = lmwire(*options, *MOCK)
    assert stale.returncode == 1
    assert stale.stdout.startswith("stale  f-13-separators")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--only", "F-99", *MOCK), "no transcript is named 'F-99'"),
        (("--only", "F-1", "--", "/no/such/worker"), "/no/such/worker"),
        (("--baseline", "/no/such/file", *MOCK), "/no/such/file"),
        (("--only", "F-1", "--json", "/no/such/folder/file", *MOCK), "/no/such/folder/file"),
        (("--timeout", "soon", *MOCK), "--timeout"),
        ((), "COMMAND"),
    ],
)
def test_wrong_usage_is_explained_and_exits_64(arguments: tuple[str, ...], complaint: str) -> None:
    ran = lmwire("conformance", "worker", *arguments)
    assert ran.returncode == 64
    assert complaint in ran.stderr
    assert "Traceback" not in ran.stderr
