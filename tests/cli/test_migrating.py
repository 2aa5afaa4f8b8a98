"""docs/migrating.md: what its second and third columns name is there."""

import json
import re
from collections.abc import Iterator
from typing import Any

from lmwire_http.app import ENDPOINTS
from lmwire_http.cli.parser import make_parser
from lmwire_http.http.openapi import make_document
from lmwire_http.http.unknown_fields import IGNORED_FIELDS_HEADER
from lmwire_worker import __main__ as worker
from lmwire_worker.models.resolve import ALIASES
from support.process.lmwire_command import REPOSITORY
from support.protocol.foreign_names import without_foreign_names

PAGE = (REPOSITORY / "docs/migrating.md").read_text(encoding="utf-8")
SYSTEMS = ("MLXServer", "mlx-knife", "proxy-inference-engine", "go-mlx", "tabbyAPI")
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n)+)", PAGE, flags=re.MULTILINE))
OWN_CODE = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", without_foreign_names(PAGE))
"""The code of lmwire in the page: all but that of the first columns."""
OTHER_VARIABLES = ("LMWIRE_MODEL",)
OTHER_CODE = {
    *("arg0", "gemma-3-4b-it", "python3"),  # not names of lmwire
    *("input_type", "instruct", "allowed_tokens", "reasoning_budget_message"),  # fields that are refused or ignored
    *("keep_alive", "ttl"),  # fields that every request may have
    *("context_length_exceeded", "role_content"),  # values that the schemas do not list
    "off",  # of an option
}


def test_each_system_has_a_table_and_an_example() -> None:
    for system in SYSTEMS:
        rows = re.findall(r"^\|.*\|$", SECTIONS[system], flags=re.MULTILINE)
        assert rows[0].endswith("| Here | What differs, and why |")
        assert all(len(re.findall(r"(?<!\\)\|", row)) == 4 for row in rows), system
        assert len(rows) > 10
        assert "```sh\n" in SECTIONS[system]


def test_each_field_is_one_of_lmwires() -> None:
    known = set(strings(make_document(ENDPOINTS, needs_key=True, strict=False)))
    known |= {alias for endpoint in ENDPOINTS for alias in endpoint.aliases}
    known |= set(strings(json.loads((REPOSITORY / "protocol/schema/v1/meta.json").read_text(encoding="utf-8"))))
    known |= set(strings(json.loads((REPOSITORY / "protocol/schema/v1/schema.json").read_text(encoding="utf-8"))))
    known |= {*ALIASES, IGNORED_FIELDS_HEADER}
    named = {code for code in OWN_CODE if re.fullmatch(r"[a-z][a-z0-9_-]*", code)}
    assert named - known - OTHER_CODE == set()
    members = {name for code in OWN_CODE for name in re.findall(r'"(\w+)":', code)}
    assert members - known == set()


def test_each_path_is_served() -> None:
    paths = {endpoint.path for endpoint in ENDPOINTS}
    assert {code for code in OWN_CODE if re.fullmatch(r"/[a-z0-9/_.]+", code)} <= paths


def test_each_environment_variable_sets_an_option() -> None:
    options = {option for action in make_parser()._actions for option in action.option_strings}
    variables = {f"LMWIRE_SERVE_{option[2:].replace('-', '_').upper()}" for option in options}
    variables |= {"LMWIRE_SERVE_MODEL", *OTHER_VARIABLES}
    named = {name for code in OWN_CODE for name in re.findall(r"\bLMWIRE_\w*[A-Z]\b", code)}
    assert named <= variables
    assert worker.MODEL == "--model"


def strings(value: Any) -> Iterator[str]:
    """Yield the names and texts of a JSON value, and the last part of each text with dots."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from strings(name)
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, str):
        yield value
        yield value.rpartition(".")[2]
