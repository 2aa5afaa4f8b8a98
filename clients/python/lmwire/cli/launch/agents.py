"""The coding agents, and how each is pointed at a server for one process."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from .server import Server

_PROVIDER: Final = "lmwire"
_LONGEST_ANSWER: Final = 32_768
"""Most tokens of an answer that agents are allowed, in tokens."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The environment variables and the arguments for an agent's process."""

    environment: dict[str, str] = field(default_factory=dict[str, str])
    arguments: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A coding agent."""

    name: str
    program: str
    """Name of its executable file."""
    install: str
    """Command that installs it."""
    context_needed: int
    """Tokens of its first request, and a margin for a short task."""
    configure: Callable[[Server, Path], Setup]
    """Returns its setup for a server. The folder is removed after the process."""


def _claude(server: Server, _: Path) -> Setup:
    """https://code.claude.com/docs/en/llm-gateway and /docs/en/env-vars."""
    model = server.model.id
    environment = {
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_AUTH_TOKEN": server.api_key,
        "ANTHROPIC_API_KEY": "",  # a key of the user's would take precedence over the token
        "ANTHROPIC_MODEL": model,
        "ANTHROPIC_DEFAULT_OPUS_MODEL": model,
        "ANTHROPIC_DEFAULT_SONNET_MODEL": model,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
        "CLAUDE_CODE_SUBAGENT_MODEL": model,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    if context := server.model.context_len:
        environment["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = str(context)
        environment["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(_answer_limit(context))
    return Setup(environment)


def _codex(server: Server, folder: Path) -> Setup:
    """https://developers.openai.com/codex/config-advanced: `-c` overrides config.toml for one process."""
    key = "LMWIRE_API_KEY"
    catalog = folder / "models.json"
    catalog.write_bytes(
        b'{"models": %b}' % server.codex_models
    )  # what Codex must know of a model that it does not list
    settings = {
        "model_provider": _PROVIDER,
        f"model_providers.{_PROVIDER}.name": "lmwire",
        f"model_providers.{_PROVIDER}.base_url": f"{server.url}/v1",
        f"model_providers.{_PROVIDER}.wire_api": "responses",
        f"model_providers.{_PROVIDER}.env_key": key,
        "model": server.model.id,
        "model_catalog_json": str(catalog),
    }
    overrides = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    if server.model.context_len:
        overrides.append(f"model_context_window={server.model.context_len}")
    return Setup({key: server.api_key}, [word for override in overrides for word in ("-c", override)])


def _opencode(server: Server, _: Path) -> Setup:
    """https://opencode.ai/docs/config and /docs/providers, "Custom provider"."""
    model = server.model
    limits = {"limit": {"context": model.context_len, "output": _answer_limit(model.context_len)}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "lmwire",
        "options": {"baseURL": f"{server.url}/v1", "apiKey": server.api_key},
        "models": {model.id: {"name": model.id, **(limits if model.context_len else {})}},
    }
    name = f"{_PROVIDER}/{model.id}"
    config = {"provider": {_PROVIDER: provider}, "model": name, "small_model": name}
    return Setup({"OPENCODE_CONFIG_CONTENT": json.dumps(config)})


def _aider(server: Server, folder: Path) -> Setup:
    """https://aider.chat/docs/llms/openai-compat.html and /docs/config/adv-model-settings.html."""
    name = f"openai/{server.model.id}"
    environment = {
        "AIDER_MODEL": name,
        "AIDER_WEAK_MODEL": name,
        "AIDER_OPENAI_API_BASE": f"{server.url}/v1",
        "AIDER_OPENAI_API_KEY": server.api_key,
        "AIDER_SHOW_MODEL_WARNINGS": "false",
    }
    if context := server.model.context_len:
        facts = {
            "max_input_tokens": context,
            "max_tokens": _answer_limit(context),
            "input_cost_per_token": 0,
            "output_cost_per_token": 0,
            "litellm_provider": "openai",
            "mode": "chat",
        }
        metadata = folder / "model-metadata.json"
        metadata.write_text(json.dumps({name: facts}), encoding="utf-8")
        environment["AIDER_MODEL_METADATA_FILE"] = str(metadata)
    return Setup(environment)


def _answer_limit(context_len: int | None) -> int:
    """Return the longest answer for a context, in tokens: a quarter of it is left for the answer."""
    return min(_LONGEST_ANSWER, (context_len or 0) // 4)


AGENTS: Final = {
    "claude": Agent(
        name="Claude Code",
        program="claude",
        install="npm install --global @anthropic-ai/claude-code",
        context_needed=40_000,
        configure=_claude,
    ),
    "codex": Agent(
        name="Codex",
        program="codex",
        install="npm install --global @openai/codex",
        context_needed=24_000,
        configure=_codex,
    ),
    "opencode": Agent(
        name="opencode",
        program="opencode",
        install="npm install --global opencode-ai",
        context_needed=24_000,
        configure=_opencode,
    ),
    "aider": Agent(
        name="aider",
        program="aider",
        install="uv tool install --python 3.12 aider-chat",
        context_needed=8_000,
        configure=_aider,
    ),
}
