"""The generated files are up to date, valid and complete."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from lmwire_protocol import CODES, COMMANDS, EXIT_CODES, formats, messages
from lmwire_protocol.schema import main, meta, schema
from support.process.worker_process import SECONDS

PARTS = [
    item
    for module in (messages, formats)
    for item in vars(module).values()
    if isinstance(item, type) and issubclass(item, msgspec.Struct) and item is not msgspec.Struct
]
COMMITTED = Path(__file__).parents[2] / "protocol" / "schema" / "v1"


def test_the_committed_files_match_the_structs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", str(COMMITTED)]) == 0, capsys.readouterr().err


def test_writing_gives_the_same_bytes_as_committed(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    for name in ("schema.json", "meta.json"):
        assert (tmp_path / name).read_bytes() == (COMMITTED / name).read_bytes()


def test_a_check_reports_a_changed_and_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "schema.json").write_text("{}\n")
    assert main(["--check", str(tmp_path)]) == 1
    output = capsys.readouterr().err
    assert "schema.json" in output
    assert "meta.json" in output
    assert (tmp_path / "schema.json").read_text() == "{}\n"


def test_the_schema_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_every_field_of_every_command_is_described() -> None:
    forms = schema()["$defs"]
    fields = [(command.__name__, field) for command in COMMANDS.values() for field in command.__struct_fields__]
    assert [pair for pair in fields if "description" not in forms[pair[0]]["properties"][pair[1]]] == []


def test_every_field_of_every_message_tool_and_format_is_described() -> None:
    forms = schema()["$defs"]
    fields = [(struct.__name__, field) for struct in PARTS for field in struct.__struct_fields__]
    assert [pair for pair in fields if "description" not in forms[pair[0]]["properties"][pair[1]]] == []


def test_every_definition_is_described() -> None:
    forms = {name: form for name, form in schema()["$defs"].items() if "properties" in form}
    assert [name for name, form in forms.items() if not form["description"]] == []


def test_commands_are_closed_and_events_are_open() -> None:
    forms = schema()["$defs"]
    names = {struct.__name__ for struct in (*COMMANDS.values(), *PARTS)}
    closed = {name for name, form in forms.items() if form.get("additionalProperties") is False}
    assert closed == names


def keywords(value: Any) -> set[str]:
    """Return the name of every member at any depth."""
    if isinstance(value, dict):
        return set(value).union(*map(keywords, value.values()))
    return set().union(*map(keywords, value)) if isinstance(value, list) else set()


def test_the_schema_uses_no_other_dialect() -> None:
    assert "discriminator" not in keywords(schema())


def test_the_facts_cover_every_command_code_and_status() -> None:
    facts = meta()
    assert list(facts["commands"]) == list(COMMANDS)
    assert list(facts["errors"]) == list(CODES)
    assert facts["exit_codes"] == {str(status): meaning for status, meaning in EXIT_CODES.items()}
    assert all(limit["description"] and limit["unit"] in ("bytes", "count") for limit in facts["limits"].values())


def test_every_done_form_that_the_facts_name_is_in_the_schema() -> None:
    forms = schema()["$defs"]
    for command in meta()["commands"].values():
        assert forms[command["done"]]["properties"]["event"] == {"const": "done"}


@pytest.mark.slow
def test_a_start_does_not_pay_for_the_schema() -> None:
    code = "import lmwire_protocol, sys; sys.exit('lmwire_protocol.schema' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=SECONDS).returncode == 0
