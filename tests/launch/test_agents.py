"""The environment and the arguments that point each coding agent at a server."""

import json
from pathlib import Path

import pytest

from lmwire.cli.launch.agents import AGENTS, Setup
from lmwire.cli.launch.server import Model, Server

CONTEXT = 65_536


def configure(agent: str, folder: Path, context_len: int | None = CONTEXT) -> Setup:
    """Return the agent's setup for a server with one model."""
    model = Model("mlx-community/Coder-4bit", context_len)
    models = b'[{"slug": "mlx-community/Coder-4bit"}]'
    server = Server(url="http://studio:8080", api_key="key", needs_key=True, model=model, codex_models=models)
    return AGENTS[agent].configure(server, folder)


def test_claude_uses_the_model_for_each_of_its_sizes(tmp_path: Path) -> None:
    environment = configure("claude", tmp_path).environment
    assert environment["ANTHROPIC_BASE_URL"] == "http://studio:8080"
    assert environment["ANTHROPIC_AUTH_TOKEN"] == "key"
    models = {value for name, value in environment.items() if name.endswith("_MODEL")}
    assert models == {"mlx-community/Coder-4bit"}


def test_claude_compacts_before_the_context_is_full(tmp_path: Path) -> None:
    environment = configure("claude", tmp_path).environment
    assert environment["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == str(CONTEXT)
    assert int(environment["CLAUDE_CODE_MAX_OUTPUT_TOKENS"]) < CONTEXT


def test_a_key_of_the_user_does_not_reach_the_server(tmp_path: Path) -> None:
    assert configure("claude", tmp_path).environment["ANTHROPIC_API_KEY"] == ""


def test_codex_gets_a_provider_by_overrides_and_the_key_by_a_variable(tmp_path: Path) -> None:
    setup = configure("codex", tmp_path)
    overrides = dict(word.split("=", 1) for word in setup.arguments if word != "-c")
    assert setup.arguments[::2] == ["-c"] * len(overrides)
    assert json.loads(overrides["model_providers.lmwire.base_url"]) == "http://studio:8080/v1"
    assert json.loads(overrides["model"]) == "mlx-community/Coder-4bit"
    assert overrides["model_context_window"] == str(CONTEXT)
    assert setup.environment == {json.loads(overrides["model_providers.lmwire.env_key"]): "key"}


def test_codex_gets_the_servers_description_of_the_models(tmp_path: Path) -> None:
    overrides = dict(word.split("=", 1) for word in configure("codex", tmp_path).arguments if word != "-c")
    catalog = json.loads(Path(json.loads(overrides["model_catalog_json"])).read_bytes())
    assert catalog == {"models": [{"slug": "mlx-community/Coder-4bit"}]}


def test_opencode_gets_a_configuration_with_the_limits_of_the_model(tmp_path: Path) -> None:
    config = json.loads(configure("opencode", tmp_path).environment["OPENCODE_CONFIG_CONTENT"])
    provider = config["provider"]["lmwire"]
    assert provider["options"] == {"baseURL": "http://studio:8080/v1", "apiKey": "key"}
    assert provider["models"]["mlx-community/Coder-4bit"]["limit"]["context"] == CONTEXT
    assert config["model"] == "lmwire/mlx-community/Coder-4bit"


def test_aider_gets_the_limits_of_the_model_in_a_file(tmp_path: Path) -> None:
    environment = configure("aider", tmp_path).environment
    facts = json.loads(Path(environment["AIDER_MODEL_METADATA_FILE"]).read_bytes())
    assert facts[environment["AIDER_MODEL"]]["max_input_tokens"] == CONTEXT


@pytest.mark.parametrize("agent", AGENTS)
def test_an_unknown_context_is_not_set(agent: str, tmp_path: Path) -> None:
    setup = configure(agent, tmp_path, context_len=None)
    shown = str([setup.environment, setup.arguments])
    for name in ('"limit"', "METADATA", "context_window", "COMPACT"):
        assert name not in shown
