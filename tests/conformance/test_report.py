"""The reports for people, CI systems and programs, and the baseline of known failures."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lmwire_conformance import baseline, report
from lmwire_conformance.report import CaseResult

PASSED = CaseResult("a", ("F-1",), "pass", seconds=0.5)
FAILED = CaseResult("b", ("T-1", "F-2"), "fail", '{"id":"x"}', "nothing \x07", 1.0)


def test_a_failure_shows_the_expected_and_the_seen_line() -> None:
    assert report.format_result(PASSED) == "pass   a  [F-1]  0.50 s"
    head, expected, seen = report.format_result(FAILED).split("\n")
    assert head == "fail   b  [T-1 F-2]  1.00 s"
    assert expected.split() == ["expected:", '{"id":"x"}']
    assert seen.split()[:2] == ["seen:", "nothing"]
    assert report.summary([PASSED, FAILED]) == "1 passed, 1 failed in 1.5 s"


def test_a_report_fails_with_a_failure_a_stale_entry_or_nothing_at_all() -> None:
    known = CaseResult("b", (), "known")
    assert report.exit_code([PASSED, known]) == 0
    assert report.exit_code([PASSED, FAILED]) == 1
    assert report.exit_code([PASSED, CaseResult("c", (), "stale")]) == 1
    assert report.exit_code([]) == 1


def test_a_skipped_case_is_reported_and_does_not_count() -> None:
    skipped = CaseResult("c", (), "skip", "the features chat.foo", "the worker does not list chat.foo")
    assert report.format_result(skipped).split("\n")[0] == "skip   c  []  0.00 s"
    assert report.summary([PASSED, skipped]) == "1 passed, 1 skipped in 0.5 s"
    assert report.exit_code([PASSED, skipped]) == 0
    assert report.exit_code([skipped]) == 1
    assert ElementTree.fromstring(report.as_junit([PASSED, skipped], "the kit")).get("skipped") == "1"
    assert baseline.apply({"c": "we have no foo"}, [skipped], ["c"]) == [skipped]


def test_junit_xml_can_be_read_whatever_was_seen() -> None:
    suite = ElementTree.fromstring(report.as_junit([PASSED, FAILED, CaseResult("c", (), "known")], "the kit"))
    assert suite.attrib | {"name": "the kit", "tests": "3", "failures": "1", "skipped": "1"} == suite.attrib
    assert [case.get("name") for case in suite] == ["a", "b", "c"]
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.text == 'expected: {"id":"x"}\nseen:     nothing \\x07'


def test_json_has_every_case() -> None:
    written = json.loads(report.as_json([PASSED, FAILED]))
    assert written["passed"] is False
    assert [case["name"] for case in written["cases"]] == ["a", "b"]
    assert written["cases"][1] == {
        "name": "b",
        "rules": ["T-1", "F-2"],
        "outcome": "fail",
        "expected": '{"id":"x"}',
        "seen": "nothing \x07",
        "seconds": 1.0,
    }


def test_a_known_failure_does_not_count_and_a_stale_entry_does(tmp_path: Path) -> None:
    file = tmp_path / "baseline"
    file.write_text("# what we know\n\nb: it hangs: see the manual\na: was slow\ngone: renamed\nelsewhere: not tried\n")
    known = baseline.read(file)
    assert known["b"] == "it hangs: see the manual"
    judged = baseline.apply(known, [PASSED, FAILED], {"a", "b", "elsewhere"})
    assert [(case.name, case.outcome) for case in judged] == [("a", "stale"), ("b", "known"), ("gone", "stale")]


@pytest.mark.parametrize("text", ["b", "b:", "b: ", "b: why\nb: again"])
def test_a_baseline_without_reasons_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "baseline"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"baseline:\d: a line is `name: reason`"):
        baseline.read(file)
