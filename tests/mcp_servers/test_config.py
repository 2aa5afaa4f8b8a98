"""The config file of MCP servers: its form is the one of other programs, and an error names the field and no value."""

import json
from pathlib import Path
from typing import Any

import pytest

from lmwire.mcp import InvalidMcpConfig, McpServerConfig, read_mcp_config

SECRET = "s3cr3t"


def read(tmp_path: Path, content: Any, **environment: str) -> tuple[McpServerConfig, ...]:
    file = tmp_path / "mcp.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_mcp_config(file, environment)


def test_a_server_is_a_program_or_an_address(tmp_path: Path) -> None:
    servers = {"files": {"command": "npx", "args": ["-y"]}, "web": {"type": "http", "url": "https://example.com/mcp"}}
    program, address = read(tmp_path, {"mcpServers": servers, "theme": "dark"})
    assert (program.name, program.command, program.args) == ("files", "npx", ("-y",))
    assert (address.name, address.url) == ("web", "https://example.com/mcp")


def test_variables_of_the_environment_keep_secrets_out_of_the_file(tmp_path: Path) -> None:
    servers = {
        "one": {"command": "${BIN}/one", "env": {"TOKEN": "${TOKEN}"}},
        "two": {"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    }
    one, two = read(tmp_path, {"mcpServers": servers}, BIN="/opt", TOKEN=SECRET, HOST="example.com")
    assert (one.command, one.env) == ("/opt/one", {"TOKEN": SECRET})
    assert (two.url, two.headers) == ("https://example.com/mcp", {"Authorization": f"Bearer {SECRET}"})


def test_a_server_can_be_disabled(tmp_path: Path) -> None:
    assert read(tmp_path, {"mcpServers": {"one": {"command": "one", "disabled": True}}}) == ()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[", "is not JSON such as"),
        ("[]", "is not JSON such as"),
        ({}, "mcpServers"),
        ({"mcpServers": []}, "mcpServers"),
        ({"mcpServers": {str(number): {} for number in range(33)}}, "more than 32 servers"),
        ({"mcpServers": {"a__b": {"command": "x"}}}, "'a__b' cannot be a server's name"),
        ({"mcpServers": {"a b": {"command": "x"}}}, "'a b' cannot be a server's name"),
        ({"mcpServers": {"a": "x"}}, "mcpServers.a: Expected `object`"),
        ({"mcpServers": {"a": {}}}, "mcpServers.a: give `command`"),
        ({"mcpServers": {"a": {"command": "x", "url": "http://x"}}}, "mcpServers.a: give `command`"),
        ({"mcpServers": {"a": {"command": ["x"]}}}, "mcpServers.a: Expected `str`, got `array` - at `$.command`"),
        ({"mcpServers": {"a": {"command": "x", "type": "http"}}}, "mcpServers.a.type: http does not fit"),
        ({"mcpServers": {"a": {"url": "http://x", "type": "sse"}}}, "mcpServers.a.type: SSE has been replaced"),
        ({"mcpServers": {"a": {"url": f"ftp://{SECRET}@x"}}}, "mcpServers.a.url: it must begin with http://"),
        ({"mcpServers": {"a": {"url": f"http://[{SECRET}"}}}, "mcpServers.a.url: it must begin with http://"),
        ({"mcpServers": {"a": {"command": "${NOT_SET}"}}}, "the environment variable NOT_SET is not set"),
        (" " * (2**20 + 1), "is larger than 1 MiB"),
    ],
)
def test_an_error_names_the_field_and_repeats_no_value(tmp_path: Path, content: Any, problem: str) -> None:
    with pytest.raises(InvalidMcpConfig) as raised:
        read(tmp_path, content)
    assert problem in str(raised.value)
    assert SECRET not in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidMcpConfig, match=r"cannot read .*none\.json: No such file"):
        read_mcp_config(tmp_path / "none.json", {})
