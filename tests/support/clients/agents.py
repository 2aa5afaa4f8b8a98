"""Coding agents, each on a task of one turn in a repository of its own."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from random_model import write_model
from support.clients.installation import node_packages, python_environment
from support.clients.relay import Relay
from support.clients.running import Outside, client_environment, run_client
from support.process.lmwire_command import LMWIRE

TASK: Final = "Write hello.txt with the word hi."
"""Task of an agent. The scripted workers know it by its words."""
DONE: Final = "Done."
"""A scripted worker's answer to anything else, such as the result of a tool."""


@dataclass
class Task:
    """A finished task.

    Args:
        output: What the agent printed.
        folder: Its repository.
    """

    output: str
    folder: Path

    def written(self) -> str | None:
        """Return the content of hello.txt, or None if the agent has not written it."""
        file = self.folder / "hello.txt"
        return file.read_text() if file.exists() else None


def finish_task(
    agent: str,
    arguments: Sequence[str],
    relay: Relay,
    outside: Outside,
    folder: Path,
    settings: Mapping[str, str] | None = None,
) -> Task:
    """Run an agent through `lmwire launch` until it has finished its task.

    Args:
        agent: Name of the agent, as `lmwire launch` takes it.
        arguments: The agent's own arguments.
        relay: The server.
        outside: What its connections to other machines reach.
        folder: Receives its home and its repository.
        settings: Content of files in its home that keep it from other machines, by path.
    """
    home, repository = folder / "home", folder / "repository"
    for path, content in {".gitconfig": "[user]\nname = A\nemail = a@example.com\n", **(settings or {})}.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(content)
    environment = client_environment(home, outside)
    programs = python_environment("aider") if agent == "aider" else node_packages() / "node_modules/.bin"
    environment["PATH"] = os.pathsep.join((str(programs), environment["PATH"]))
    subprocess.run(["git", "init", "--quiet", repository], env=environment, check=True)
    done = run_client([LMWIRE, "launch", agent, "--url", relay.url, "--", *arguments], environment, repository)
    return Task(done.stdout, repository)


def write_scenario(file: Path, tool: str, arguments: Mapping[str, str]) -> Path:
    """Write a scenario of the mock worker that answers the task with a call, and return its file.

    Args:
        file: Receives the scenario.
        tool: Name of the agent's tool.
        arguments: The call's arguments.
    """
    call = {"name": tool, "arguments": dict(arguments)}
    task = {"match": {"last_message": TASK, "has": ["tools"]}, "reply": {"tool_calls": [call]}}
    file.write_text(json.dumps({"rules": [task, {"reply": {"text": DONE}}]}))
    return file


def write_long_model(folder: Path) -> Path:
    """Write a model of random weights that reads the long prompts of agents quickly, and return its folder.

    It ends its turn after few tokens, so that the agent takes its words for the answer.

    Args:
        folder: Receives the model.
    """
    small: dict[str, Any] = {"num_hidden_layers": 1, "hidden_size": 16, "intermediate_size": 16, "head_dim": 8}
    small |= {"num_attention_heads": 1, "num_key_value_heads": 1, "max_position_embeddings": 131_072}
    return write_model(folder, "llama", end_scale=20, **small)
