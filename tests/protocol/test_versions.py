"""All packages of the repository have one version, which a tag names."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lmwire_protocol import __version__

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "clients"


def json_of(path: str) -> Any:
    return json.loads((CLIENTS / path).read_text())


def found(path: str, pattern: str) -> str:
    match = re.search(pattern, (CLIENTS / path).read_text(), flags=re.MULTILINE)
    assert match, f"{path} has no version"
    return match[1]


@pytest.mark.parametrize("package", ["node", "node-ai-sdk"])
def test_a_package_of_npm_and_its_lock_have_the_version(package: str) -> None:
    lock = json_of(f"{package}/package-lock.json")
    assert json_of(f"{package}/package.json")["version"] == __version__
    assert (lock["version"], lock["packages"][""]["version"]) == (__version__, __version__)


def test_the_provider_of_the_ai_sdk_asks_for_the_node_client_of_its_version() -> None:
    assert json_of("node-ai-sdk/package.json")["peerDependencies"]["lmwire"] == __version__
    lock = json_of("node-ai-sdk/package-lock.json")["packages"]
    assert (lock[""]["peerDependencies"]["lmwire"], lock["../node"]["version"]) == (__version__, __version__)


def test_constants_in_the_code_of_clients_have_the_version() -> None:
    assert found("node/src/version.ts", r'VERSION = "(.*)"') == __version__
    assert found("../examples/neovim/lua/lmwire/version.lua", r'^return "(.*)"') == __version__
    assert found("c/lmwire.h", r'^#define LMWIRE_VERSION "(.*)"') == __version__
    assert found("go/worker.go", r'^const Version = "(.*)"') == __version__


def test_the_crate_has_the_version() -> None:
    assert tomllib.loads((CLIENTS / "rust" / "Cargo.toml").read_text())["package"]["version"] == __version__


def test_the_changelog_has_a_section_for_it() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert f"## [{__version__}]" in text or f"## [Unreleased]\n\nTo be {__version__}" in text
