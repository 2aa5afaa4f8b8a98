"""MCP servers of `lmwire serve`: who may call their tools, and the errors of a server without any."""

import json
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from lmwire_http.cli.main import parse
from support.http.http_server import served
from support.process.worker_process import SECONDS


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"files": {"command": "files-server", "env": {"TOKEN": "secret"}}}}')
    file.chmod(0o600)
    return str(file)


def test_the_servers_of_the_file_are_those_of_the_settings(config: str) -> None:
    settings = parse(["--mcp-config", config, "--mcp-timeout", "5m"], {})
    assert ([server.name for server in settings.mcp_servers], settings.mcp_timeout_s) == (["files"], 300)
    assert "other users of this machine can call the tools" in settings.warnings[0]


@pytest.mark.parametrize("options", [("--public", "--host", "0.0.0.0"), ("--cors", "*")])
def test_everyone_may_not_call_tools(config: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--mcp-config", config, *options], {})
    assert "--mcp-config: with --public or --cors '*' everyone could call the tools" in capsys.readouterr().err
    assert parse(["--mcp-config", config, *options, "--api-key", "KEY"], {}).mcp_servers


def test_a_file_that_others_can_change_is_warned_about(config: str) -> None:
    Path(config).chmod(0o666)
    settings = parse(["--mcp-config", config, "--api-key", "KEY"], {})
    assert any(warning.startswith("--mcp-config: other users can read or change") for warning in settings.warnings)


def test_a_server_without_tools_says_so() -> None:
    with served("--worker", "none") as server:
        with urlopen(f"{server.url}/v1/mcp/tools", timeout=SECONDS) as response:
            assert json.load(response) == {"servers": []}
        call = Request(f"{server.url}/v1/mcp/call", b'{"name": "a__b"}', {"content-type": "application/json"})
        with pytest.raises(HTTPError) as raised:
            urlopen(call, timeout=SECONDS)
        assert raised.value.code == 404
        assert "--mcp-config FILE" in raised.value.read().decode()


def test_tools_need_the_key_and_a_page_of_this_server() -> None:
    with served("--worker", "none", "--api-key", "KEY") as server, pytest.raises(HTTPError) as raised:
        urlopen(f"{server.url}/v1/mcp/tools", timeout=SECONDS)
    assert raised.value.code == 401
    with served("--worker", "none") as server, pytest.raises(HTTPError) as raised:
        urlopen(Request(f"{server.url}/v1/mcp/tools", headers={"origin": "http://evil.example"}), timeout=SECONDS)
    assert raised.value.code == 403
