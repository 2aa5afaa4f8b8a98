"""Every rule and every MUST of the protocol is proved somewhere, and TRACEABILITY.md names the proof."""

import re

from support.many_cases import for_each
from support.protocol import traceability
from support.protocol.traceability import ROOT, functions_in, must, rows, statements

ROWS = {row.rule: row for row in rows()}


def test_the_file_says_what_transcripts_and_cases_say_themselves() -> None:
    assert traceability.FILE.read_text(encoding="utf-8") == traceability.written(), "make traceability"


@for_each([rule for rule in statements() if must(rule) or not rule.startswith("#")])
def test_every_rule_and_every_must_is_proved(rule: str) -> None:
    row = ROWS[rule]
    assert row.transcripts or row.host_cases or row.tests


def test_every_rule_that_anything_claims_to_prove_exists() -> None:
    assert set(traceability.entered()) - {"rule", "---"} <= set(statements())
    assert {rule for case in traceability.CASES for rule in case.rules} <= set(statements())


def test_every_rule_that_the_kit_reports_exists() -> None:
    for path in (ROOT / "protocol" / "lmwire_conformance").rglob("*.py"):
        for rule in re.findall(r'"([A-Z]-\d+|#[a-z-]+)"', path.read_text(encoding="utf-8")):
            assert rule in statements(), path


@for_each([rule for rule, row in ROWS.items() if row.tests])
def test_every_test_that_is_named_exists(rule: str) -> None:
    for test in ROWS[rule].tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).is_file(), test
        assert name in functions_in(path), test


def test_a_statement_is_found_under_its_rule_and_others_under_their_heading() -> None:
    assert statements()["F-2"].startswith("The worker drops one carriage return before the newline. It ignores lines")
    assert "A host MUST give exactly one of the two fields." in statements()["#cancel"]
    assert "fails with `not_loaded` without a model" in statements()["#cache"], "of the second part"
    assert not must("#the-lmwire-protocol-version-1")
    assert must("F-1") and must("#commands") and not must("F-2")
