"""`lmwire chat` with tools of MCP servers: nothing runs that the person has not allowed."""

import json
from pathlib import Path

import pytest

from support.mcp.running import config_file, hostile_server
from support.process.lmwire_command import MOCK_WORKER, Terminal, lmwire

pytestmark = pytest.mark.slow
ENTER, CTRL_D = "\r", "\x04"


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    """Return the options of a chat whose model adds numbers with a tool, when it is asked to."""
    call = {"id": "sum", "name": "tools__add", "arguments": {"a": 20, "b": 22}}
    rules = [
        {"match": {"last_message": "add", "has": ["tools"]}, "reply": {"tool_calls": [call]}},
        {"match": {"last_message": "42"}, "reply": {"text": "It is 42."}},
        {"match": {"last_message": "refused"}, "reply": {"text": "Then not."}},
    ]
    scenario = tmp_path / "answers.json"
    scenario.write_text(json.dumps({"rules": rules}))
    config = config_file(tmp_path, hostile_server("adds", tmp_path / "started", "tools"))
    return ["chat", "mock", "--worker", f"{MOCK_WORKER} --scenario {scenario}", "--mcp-config", str(config)]


def test_a_pipeline_calls_only_what_an_option_allows(options: list[str]) -> None:
    allowed = lmwire(*options, "-p", "add", "--allow-tool", "tools__add")
    assert (allowed.returncode, allowed.stdout, allowed.stderr) == (0, "It is 42.\n", "")
    refused = lmwire(*options, "-p", "add")
    assert (refused.returncode, refused.stdout) == (0, "Then not.\n")
    assert "tools__add was not called: --allow-tool tools__add allows it" in refused.stderr


def test_on_a_terminal_each_call_is_asked_for_until_one_is_allowed_for_good(options: list[str]) -> None:
    with Terminal(*options) as terminal:
        terminal.read_until(">")
        for answer, text in (("n", "Then not."), ("y", "It is 42."), ("a", "It is 42."), (None, "It is 42.")):
            terminal.type(f"add{ENTER}")
            if answer:
                terminal.read_until("[y]es, [a]lways, [n]o:")
                terminal.type(answer + ENTER)
            terminal.read_until(text)
            terminal.read_until(">")
        terminal.type(CTRL_D)
        assert terminal.wait() == 0


def test_a_config_that_cannot_be_used_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"one": {}}}')
    result = lmwire("chat", "mock", "-p", "hi", "--mcp-config", str(tmp_path / "mcp.json"))
    assert result.returncode == 64
    assert "--mcp-config: mcpServers.one: give `command`" in result.stderr
