"""The guide's examples, run as they stand where their toolchain is; and its tables, held to the code."""

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from lmwire_worker.mock.catalogue import FAULTS
from lmwire_worker.mock.replies import Call, Reply
from lmwire_worker.mock.scenario import Match, Rule
from support.process.lmwire_command import LMWIRE, REPOSITORY
from support.process.mock_host import LOAD, mock
from support.process.programs import program
from support.process.worker_process import SECONDS
from support.process.worker_thread import run_on_thread

GUIDE = (REPOSITORY / "worker" / "MOCK.md").read_text()
FILES = dict(re.findall(r"^<!-- (\S+) -->\n```\w+\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL))
RUNNERS = {
    "mock_test.go": ["go", "test", "-count=1", "-vet=off", "./mock_test.go"],
    "mock.rs": ["rustc", "--edition=2021", "--test", "mock.rs", "-o", "mock"],
    "mock.test.mjs": ["node", "--test", "mock.test.mjs"],
    "test_host.py": [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_host.py"],
}
"""For a compiler that has never run on this machine."""


def test_every_language_has_an_example() -> None:
    assert FILES.keys() == RUNNERS.keys() | {"weather.json", "tools.json", "notes.json"}


def test_the_tool_is_called_and_then_the_answer_has_its_form(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(FILES["tools.json"])
    tool = {"type": "function", "function": {"name": "look_up"}}
    asked = {"role": "user", "content": "The weather?"}
    call = {"id": "1", "name": "look_up", "arguments": {"city": "Rome"}}
    found = [
        asked,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "30 degrees"},
    ]
    output = run_on_thread(
        mock("--scenario", str(path)),
        LOAD,
        {"id": "a", "cmd": "chat", "messages": [asked], "tools": [tool]},
        {"id": "b", "cmd": "chat", "messages": found, "tools": [tool], "format": {"type": "json_object"}},
    )
    arguments = "".join(event.get("arguments", "") for event in output.of("a") if event["event"] == "tool_call")
    assert (output.text("a"), arguments) == ("I need to look that up.", '{"city":"Rome"}')
    assert (output.terminals("a")[0]["finish_reason"], output.text("b")) == ("tool_calls", '{"sunny":true}')


def test_the_example_scenario_embeds_and_transcribes(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    path.write_text(FILES["notes.json"])
    output = run_on_thread(
        mock("--scenario", str(path)),
        LOAD,
        {"id": "near", "cmd": "embed", "input": ["the ocean"], "encoding": "float"},
        {"id": "far", "cmd": "embed", "input": ["a car", "a house"], "encoding": "float"},
        {"id": "note", "cmd": "transcribe", "audio": {"path": "/tmp/note.wav"}},
    )
    vectors = {id: [event["embedding"] for event in output.of(id)[:-1]] for id in ("near", "far")}
    assert vectors == {"near": [[1, 0, 0]], "far": [[0, 1, 0], [0, 0, 1]]}
    said = [event["text"] for event in output.of("note") if event["event"] == "segment"]
    assert said == ["Buy milk. ", "And bread."]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNNERS)
def test_the_example_runs(name: str, tmp_path: Path) -> None:
    program(RUNNERS[name][0])
    for file in (name, "weather.json"):
        (tmp_path / file).write_text(FILES[file])
    env = os.environ | {"PATH": os.pathsep.join((str(Path(LMWIRE).parent), os.environ["PATH"]))}
    commands = [RUNNERS[name], ["./mock"]] if name == "mock.rs" else [RUNNERS[name]]
    for command in commands:
        run = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr


def test_the_guide_lists_every_fault() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*?) \| (.*?) ?\|$", GUIDE[GUIDE.index("## Faults") :], flags=re.MULTILINE)
    assert rows == [
        (
            name,
            fault.summary,
            ", ".join(f"`{key}`" if value is None else f"`{key}={value}`" for key, value in fault.parameters.items()),
        )
        for name, fault in FAULTS.items()
    ]


@pytest.mark.parametrize(
    ("title", "struct"),
    [("a rule has", Rule), ("`match` has", Match), ("`reply` has", Reply), ("a call has", Call)],
)
def test_the_guide_lists_every_field_of_a_scenario(title: str, struct: type[msgspec.Struct]) -> None:
    table = GUIDE[GUIDE.index(f"| {title}") :].partition("\n\n")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert sorted(re.findall(r"`(\w+)`", "".join(first_cells))) == sorted(struct.__struct_fields__)
